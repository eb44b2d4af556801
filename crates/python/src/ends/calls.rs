//! Calls that wait, as a loop of asyncio takes them: it polls a call, and polls it again when the doorbell says so.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use fulmar::{Messages, Stream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use super::{NativeMessages, NativeStream};

/// The error of Python's for one of the library's: a setting that is wrong is a `ValueError`, the rest an `OSError` of the
/// class that Python has for it.
pub(super) fn raised(error: io::Error) -> PyErr {
    if error.kind() == ErrorKind::InvalidInput {
        PyValueError::new_err(error.to_string())
    } else {
        error.into()
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls that may go on, and a descriptor that is readable while there are any. The thread that moves datagrams rings; it
/// takes no lock of the interpreter's.
#[derive(Debug)]
pub(super) struct Doorbell {
    calls: Mutex<RungCalls>,
    outside: UnixStream,
    inside: UnixStream,
}

#[derive(Debug, Default)]
struct RungCalls {
    last: u64,
    rung: Vec<u64>,
}

impl Doorbell {
    pub(super) fn new() -> io::Result<Self> {
        let (outside, inside) = UnixStream::pair()?;
        for end in [&outside, &inside] {
            end.set_nonblocking(true)?;
        }
        Ok(Self {
            calls: Mutex::default(),
            outside,
            inside,
        })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.inside.as_raw_fd()
    }

    /// Takes the numbers of the calls that may go on.
    pub(super) fn take(&self) -> Vec<u64> {
        let mut calls = locked(&self.calls);
        let mut octets = [0; 8];
        while matches!((&self.inside).read(&mut octets), Ok(1..)) {}
        core::mem::take(&mut calls.rung)
    }

    fn ring(&self, call: u64) {
        let mut calls = locked(&self.calls);
        // One octet for all that have rung: a full pipe cannot be.
        if calls.rung.is_empty() {
            drop((&self.outside).write(&[0]));
        }
        calls.rung.push(call);
    }

    /// A call, which begins when it is polled. Its answer is an error once `handle` is closed.
    pub(super) fn call<T: Send + Sync + 'static>(
        self: &Arc<Self>,
        handle: &OpenHandle<T>,
        call: impl Future<Output = io::Result<CallAnswer>> + Send + 'static,
    ) -> NativeCall {
        let mut calls = locked(&self.calls);
        calls.last += 1;
        let number = calls.last;
        let handle = handle.clone();
        let mut call = Box::pin(call);
        let going = poll_fn(move |task| match handle.get() {
            Ok(_) => call.as_mut().poll(task),
            Err(closed) => Poll::Ready(Err(closed)),
        });
        let bell = Arc::clone(self);
        NativeCall {
            number,
            bell: Arc::clone(self),
            waker: Waker::from(Arc::new(CallWaker { bell, number })),
            going: Mutex::new(Some(Box::pin(going))),
        }
    }
}

struct CallWaker {
    bell: Arc<Doorbell>,
    number: u64,
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.bell.ring(self.number);
    }
}

/// Something of the library's until it is closed.
#[derive(Debug)]
pub(super) struct OpenHandle<T>(Arc<Mutex<Option<Arc<T>>>>);

impl<T> Clone for OpenHandle<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> OpenHandle<T> {
    pub(super) fn new(open: T) -> Self {
        Self(Arc::new(Mutex::new(Some(Arc::new(open)))))
    }

    pub(super) fn get(&self) -> io::Result<Arc<T>> {
        let closed = || io::Error::new(ErrorKind::NotConnected, "it was closed");
        locked(&self.0).clone().ok_or_else(closed)
    }

    pub(super) fn close(&self) {
        let open = locked(&self.0).take();
        drop(open);
    }
}

/// The answer to a call.
pub(super) enum CallAnswer {
    Nothing,
    Octets(Vec<u8>),
    Message(Option<Vec<u8>>),
    Stream(Stream),
    Messages(Messages),
}

type GoingCall = Pin<Box<dyn Future<Output = io::Result<CallAnswer>> + Send>>;

/// A call that may have to wait.
#[pyclass(frozen, module = "fulmar_lab._native")]
pub(crate) struct NativeCall {
    number: u64,
    bell: Arc<Doorbell>,
    waker: Waker,
    going: Mutex<Option<GoingCall>>,
}

impl NativeCall {
    fn go_on(&self) -> Poll<io::Result<CallAnswer>> {
        let mut going = locked(&self.going);
        let Some(call) = going.as_mut() else {
            return Poll::Ready(Err(io::Error::other("the call is over")));
        };
        let answer = call.as_mut().poll(&mut Context::from_waker(&self.waker));
        if answer.is_ready() {
            *going = None;
        }
        answer
    }
}

#[pymethods]
impl NativeCall {
    /// The number by which the doorbell names the call.
    #[getter]
    const fn number(&self) -> u64 {
        self.number
    }

    /// The answer as the only item of a tuple; `None` while the call has to wait.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>,)>> {
        let Poll::Ready(answer) = py.detach(|| self.go_on()) else {
            return Ok(None);
        };
        let octets = |octets: Vec<u8>| PyBytes::new(py, &octets).into_any().unbind();
        let answer = match answer.map_err(raised)? {
            CallAnswer::Nothing | CallAnswer::Message(None) => py.None(),
            CallAnswer::Octets(read) | CallAnswer::Message(Some(read)) => octets(read),
            CallAnswer::Stream(stream) => {
                let stream = NativeStream::new(Arc::clone(&self.bell), stream);
                Py::new(py, stream)?.into_any()
            }
            CallAnswer::Messages(messages) => {
                let messages = NativeMessages::new(Arc::clone(&self.bell), messages);
                Py::new(py, messages)?.into_any()
            }
        };
        Ok(Some((answer,)))
    }

    /// Gives the call up: what it waited for stays for another one.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *locked(&self.going) = None);
    }
}
