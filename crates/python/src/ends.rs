//! Streams and messages to another program, for Python: the library's endpoint, whose calls a loop of asyncio polls.
//!
//! The endpoint's own thread moves the datagrams and never waits for the interpreter.

mod calls;

use calls::{CallAnswer, Doorbell, OpenHandle, locked, raised};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Poll, ready};
use core::time::Duration;
use fulmar::{
    Bitrate, Config, Endpoint, Listener, Messages, Priority, PublicKey, RateSharing, SecretKey,
    Stream, new_secret_key,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};

/// The most octets that one read takes room for before any have come.
const READ_MAX: usize = 1 << 20;

pub(crate) use calls::NativeCall;

fn wrong(reason: impl Display) -> PyErr {
    PyValueError::new_err(reason.to_string())
}

fn span(seconds: f64, name: &str) -> PyResult<Duration> {
    let span = Duration::try_from_secs_f64(seconds);
    span.map_err(|_| wrong(format!("{name}={seconds}: seconds, and no fewer than 0")))
}

fn public(name: &str, key: &str) -> PyResult<PublicKey> {
    key.parse()
        .map_err(|error| wrong(format!("{name}: {error}")))
}

/// Refuses a text that is no public key, by the name of its argument.
#[pyfunction]
pub(crate) fn check_public_key(name: &str, key: &str) -> PyResult<()> {
    public(name, key).map(drop)
}

/// The secret key of an end of one's own. ``SecretKey(text)`` takes the text of a key file.
#[pyclass(frozen, name = "SecretKey", module = "fulmar_lab")]
#[derive(Debug)]
pub(crate) struct EndKey(SecretKey);

#[pymethods]
impl EndKey {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        Ok(Self(text.parse().map_err(wrong)?))
    }

    /// Makes a new key.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        Ok(Self(new_secret_key().map_err(raised)?))
    }

    /// The key as text, as in a key file. Keep it secret.
    #[getter]
    fn text(&self) -> String {
        self.0.to_text()
    }

    /// The key by which others know this end.
    #[getter]
    fn public(&self) -> String {
        self.0.public().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<SecretKey of {}>", self.0.public())
    }
}

/// The settings of an end, as Python has them.
#[derive(FromPyObject)]
pub(crate) struct EndSettings {
    rate: Option<String>,
    share: Option<String>,
    deadline: Option<f64>,
    carrier: String,
    connect_timeout: f64,
    give_up_after: f64,
}

impl EndSettings {
    fn config(&self, key: &EndKey, peers: &[String]) -> PyResult<Config> {
        let mut config = Config::new(key.0.clone())
            .connect_timeout(span(self.connect_timeout, "connect_timeout")?)
            .give_up_after(span(self.give_up_after, "give_up_after")?);
        for peer in peers {
            config = config.peer(public("peers", peer)?);
        }
        if let Some(rate) = &self.rate {
            let read: Result<Bitrate, _> = rate.parse();
            config = config.rate(read.map_err(|error| wrong(format!("rate={rate:?}: {error}")))?);
        }
        if let Some(share) = &self.share {
            config = config.share(match share.as_str() {
                "own" => RateSharing::Own,
                "fair" => RateSharing::Fair,
                "background" => RateSharing::Background,
                _ => return Err(wrong(format!("share={share:?}: own, fair or background"))),
            });
        }
        if let Some(deadline) = self.deadline {
            config = config.deadline(span(deadline, "deadline")?);
        }
        match self.carrier.as_str() {
            "udp" => Ok(config),
            "auto" => Ok(config.choose_checksum()),
            other => Err(wrong(format!("carrier={other:?}: udp or auto"))),
        }
    }
}

/// The checked settings of an end.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeEndConfig(Config);

#[pymethods]
#[expect(
    clippy::needless_pass_by_value,
    reason = "the binding makes values of Python's"
)]
impl NativeEndConfig {
    #[new]
    fn new(key: &Bound<'_, EndKey>, peers: Vec<String>, settings: EndSettings) -> PyResult<Self> {
        let config = settings.config(key.get(), &peers)?;
        match config.check() {
            Ok(()) => Ok(Self(config)),
            // Arguments have the names of the library's settings.
            Err(error) => Err(wrong(error.to_string().replace("Config::", ""))),
        }
    }
}

/// A UDP port with its thread.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeEndpoint {
    endpoint: Mutex<Option<Endpoint>>,
    bell: Arc<Doorbell>,
    local: SocketAddr,
}

impl NativeEndpoint {
    fn with<T>(&self, call: impl FnOnce(&Endpoint) -> io::Result<T>) -> PyResult<T> {
        let endpoint = locked(&self.endpoint);
        let closed = || io::Error::new(io::ErrorKind::NotConnected, "it was closed");
        let open = endpoint.as_ref().ok_or_else(closed).map_err(raised)?;
        call(open).map_err(raised)
    }
}

#[pymethods]
impl NativeEndpoint {
    /// Binds a port at a numeric address.
    #[new]
    fn new(address: &str, config: &Bound<'_, NativeEndConfig>) -> PyResult<Self> {
        let endpoint = Endpoint::bind(address, config.get().0.clone()).map_err(raised)?;
        Ok(Self {
            local: endpoint.local_addr(),
            endpoint: Mutex::new(Some(endpoint)),
            bell: Arc::new(Doorbell::new().map_err(raised)?),
        })
    }

    /// The address and port that it is bound to.
    #[getter]
    fn address(&self) -> (String, u16) {
        (self.local.ip().to_string(), self.local.port())
    }

    /// The descriptor that is readable while calls may go on.
    fn fileno(&self) -> RawFd {
        self.bell.descriptor()
    }

    /// Takes the numbers of the calls that may go on.
    fn rung(&self) -> Vec<u64> {
        self.bell.take()
    }

    fn listen(&self) -> PyResult<NativeListener> {
        Ok(NativeListener {
            listener: OpenHandle::new(self.with(Endpoint::listen)?),
            bell: Arc::clone(&self.bell),
        })
    }

    fn stream(&self, address: &str, peer: &str) -> PyResult<NativeStream> {
        let peer = public("peer", peer)?;
        let stream = self.with(|endpoint| endpoint.connect(address, &peer))?;
        Ok(NativeStream::new(Arc::clone(&self.bell), stream))
    }

    fn messages(&self, address: &str, peer: &str) -> PyResult<NativeMessages> {
        let peer = public("peer", peer)?;
        let messages = self.with(|endpoint| endpoint.messages(address, &peer))?;
        Ok(NativeMessages::new(Arc::clone(&self.bell), messages))
    }

    /// Ends it: waits for three seconds at most until what was written is confirmed.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let endpoint = locked(&self.endpoint).take();
            drop(endpoint);
        });
    }
}

impl Drop for NativeEndpoint {
    /// Ends it elsewhere, since that may take three seconds, and the interpreter waits here.
    fn drop(&mut self) {
        if let Some(endpoint) = locked(&self.endpoint).take() {
            let ending = thread::Builder::new().name("fulmar end".to_owned());
            drop(ending.spawn(move || drop(endpoint)));
        }
    }
}

/// The streams and messages that peers open.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeListener {
    listener: OpenHandle<Listener>,
    bell: Arc<Doorbell>,
}

#[pymethods]
impl NativeListener {
    fn accept(&self) -> PyResult<NativeCall> {
        let listener = self.listener.get().map_err(raised)?;
        let call = async move { Ok(CallAnswer::Stream(listener.accept_async().await?)) };
        Ok(self.bell.call(&self.listener, call))
    }

    fn accept_messages(&self) -> PyResult<NativeCall> {
        let listener = self.listener.get().map_err(raised)?;
        let call = async move {
            Ok(CallAnswer::Messages(
                listener.accept_messages_async().await?,
            ))
        };
        Ok(self.bell.call(&self.listener, call))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.listener.close());
    }
}

/// A stream of octets both ways.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeStream {
    stream: OpenHandle<Mutex<Stream>>,
    bell: Arc<Doorbell>,
    peer: Option<String>,
}

impl NativeStream {
    fn new(bell: Arc<Doorbell>, stream: Stream) -> Self {
        Self {
            peer: stream.peer().map(|key| key.to_string()),
            stream: OpenHandle::new(Mutex::new(stream)),
            bell,
        }
    }
}

#[pymethods]
impl NativeStream {
    /// The peer's public key.
    #[getter]
    fn peer(&self) -> Option<&str> {
        self.peer.as_deref()
    }

    /// So many octets at most; none at the end.
    fn read(&self, most: usize) -> PyResult<NativeCall> {
        let stream = self.stream.get().map_err(raised)?;
        let mut octets = vec![0; most.min(READ_MAX)];
        let call = poll_fn(move |task| {
            let mut room = ReadBuf::new(&mut octets);
            let read = Pin::new(&mut *locked(&stream)).poll_read(task, &mut room);
            ready!(read)?;
            let len = room.filled().len();
            octets.truncate(len);
            Poll::Ready(Ok(CallAnswer::Octets(core::mem::take(&mut octets))))
        });
        Ok(self.bell.call(&self.stream, call))
    }

    /// Takes all octets; what does not fit waits.
    fn write(&self, octets: PyBackedBytes) -> PyResult<NativeCall> {
        let stream = self.stream.get().map_err(raised)?;
        let mut written = 0;
        let call = poll_fn(move |task| {
            while let Some(left) = octets.get(written..).filter(|left| !left.is_empty()) {
                let taken = Pin::new(&mut *locked(&stream)).poll_write(task, left);
                written += ready!(taken)?;
            }
            Poll::Ready(Ok(CallAnswer::Nothing))
        });
        Ok(self.bell.call(&self.stream, call))
    }

    /// Ends the own direction, and waits until all that was written is confirmed.
    fn finish(&self) -> PyResult<NativeCall> {
        let stream = self.stream.get().map_err(raised)?;
        let call = poll_fn(move |task| {
            ready!(Pin::new(&mut *locked(&stream)).poll_shutdown(task))?;
            Poll::Ready(Ok(CallAnswer::Nothing))
        });
        Ok(self.bell.call(&self.stream, call))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.stream.close());
    }
}

/// Whole messages both ways.
#[pyclass(frozen, module = "fulmar_lab._native")]
#[derive(Debug)]
pub(crate) struct NativeMessages {
    messages: OpenHandle<Messages>,
    bell: Arc<Doorbell>,
    peer: Option<String>,
}

impl NativeMessages {
    fn new(bell: Arc<Doorbell>, messages: Messages) -> Self {
        Self {
            peer: messages.peer().map(|key| key.to_string()),
            messages: OpenHandle::new(messages),
            bell,
        }
    }
}

/// A clock for the deadlines of calls, which nobody drives: Python's loop ends a call whose time is over.
fn clock() -> io::Result<&'static Runtime> {
    static CLOCK: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = CLOCK.get_or_init(|| Builder::new_current_thread().enable_time().build());
    made.as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

#[pymethods]
impl NativeMessages {
    /// The peer's public key.
    #[getter]
    fn peer(&self) -> Option<&str> {
        self.peer.as_deref()
    }

    /// Takes a message. Whoever calls ends the call when its time is over.
    fn send(&self, message: PyBackedBytes, deadline: f64, priority: u8) -> PyResult<NativeCall> {
        let messages = self.messages.get().map_err(raised)?;
        let deadline = span(deadline, "deadline")?;
        let clock = clock().map_err(raised)?;
        let mut sending = Box::pin(async move {
            let sent = messages.send_async(&message, deadline, Priority(priority));
            sent.await.map(|()| CallAnswer::Nothing)
        });
        let call = poll_fn(move |task| {
            let _here = clock.enter();
            sending.as_mut().poll(task)
        });
        Ok(self.bell.call(&self.messages, call))
    }

    /// The next message; `None` behind the last one.
    fn receive(&self) -> PyResult<NativeCall> {
        let messages = self.messages.get().map_err(raised)?;
        let call = async move { Ok(CallAnswer::Message(messages.receive_async().await?)) };
        Ok(self.bell.call(&self.messages, call))
    }

    /// Sends no more, and waits until each message is confirmed or was too late.
    fn finish(&self) -> PyResult<NativeCall> {
        let messages = self.messages.get().map_err(raised)?;
        let call = async move { messages.finish_async().await.map(|()| CallAnswer::Nothing) };
        Ok(self.bell.call(&self.messages, call))
    }

    /// The messages whose time was over: those of this end that never left, and those of the peer that came too late.
    fn expired(&self) -> PyResult<(u64, u64)> {
        let expired = self.messages.get().map_err(raised)?.expired();
        Ok((expired.here, expired.arrived_late))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.messages.close());
    }
}
