//! The calls of tasks: what blocks elsewhere is awaited here (feature `tokio`).
//!
//! A task that is dropped while it waits has done nothing: what it would have accepted or received stays for the next
//! call, and what it would have sent is not sent.

use crate::endpoint::{Endpoint, Listener, or_over};
use crate::messages::{Messages, check};
use crate::stream::Stream;
use fulmar_net::session::PublicKey;
use fulmar_proto::machine::Priority;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let room = out.initialize_unfilled();
        let read = (self.shared).poll(task, &self.reading, |board| self.try_read(board, room));
        out.advance(ready!(read)?);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        if octets.is_empty() {
            return Poll::Ready(Ok(0));
        }
        (self.shared).poll(task, &self.writing, |board| self.try_write(board, octets))
    }

    /// Does nothing: octets leave by themselves. Shutting down waits until they have arrived.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the own direction and waits as [`Stream::finish`] does.
    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        (self.shared).poll(task, &self.writing, |board| match self.shut(board) {
            Ok(()) => self.try_finish(board),
            Err(error) => Some(Err(error)),
        })
    }
}

impl Endpoint {
    /// As [`Endpoint::connect`], for tasks (feature `tokio`): looks the name up without blocking. Where the address is no name,
    /// [`Endpoint::connect`] does as well, since it does not wait.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn connect_async<'k>(
        &self,
        address: impl tokio::net::ToSocketAddrs,
        key: impl Into<Option<&'k PublicKey>>,
    ) -> io::Result<Stream> {
        let addresses: Vec<_> = tokio::net::lookup_host(address).await?.collect();
        self.connect(&addresses[..], key)
    }

    /// Ends the endpoint as dropping it does (feature `tokio`), without holding up the other tasks of the thread meanwhile.
    pub async fn close_async(self) {
        // It does not panic, and there is nobody to tell.
        drop(tokio::task::spawn_blocking(move || drop(self)).await);
    }
}

impl Listener {
    /// As [`Listener::accept`], for tasks (feature `tokio`).
    ///
    /// # Errors
    /// `NotConnected` once the endpoint was dropped.
    pub async fn accept_async(&self) -> io::Result<Stream> {
        let seat = self.signal.seat();
        let next = |task: &mut Context<'_>| {
            (self.shared).poll(task, &seat, |board| or_over(self.next_stream(board), board))
        };
        poll_fn(next).await
    }

    /// As [`Listener::accept_messages`], for tasks (feature `tokio`).
    ///
    /// # Errors
    /// As [`Listener::accept_async`].
    pub async fn accept_messages_async(&self) -> io::Result<Messages> {
        let seat = self.signal.seat();
        let next = |task: &mut Context<'_>| {
            (self.shared).poll(task, &seat, |board| {
                or_over(self.next_messages(board), board)
            })
        };
        poll_fn(next).await
    }
}

impl Messages {
    /// As [`Messages::send`], for tasks of a runtime with a clock (feature `tokio`).
    ///
    /// # Errors
    /// As [`Messages::send`].
    pub async fn send_async(
        &self,
        octets: &[u8],
        deadline: Duration,
        priority: Priority,
    ) -> io::Result<()> {
        check(octets, deadline)?;
        let began = self.shared.clock.now();
        let seat = self.signal.seat();
        let sent = poll_fn(|task| {
            (self.shared).poll(task, &seat, |board| {
                let waited = self.shared.clock.now().saturating_since(began);
                let left = deadline.saturating_sub(waited);
                self.try_send(board, octets, left, priority.0).transpose()
            })
        });
        let late = |_| io::Error::new(ErrorKind::TimedOut, "too much waits to be sent");
        tokio::time::timeout(deadline, sent).await.map_err(late)?
    }

    /// As [`Messages::receive`], for tasks (feature `tokio`).
    ///
    /// # Errors
    /// As [`Messages::receive`].
    pub async fn receive_async(&self) -> io::Result<Option<Vec<u8>>> {
        let seat = self.signal.seat();
        let next = |task: &mut Context<'_>| {
            (self.shared).poll(task, &seat, |board| self.try_receive(board))
        };
        poll_fn(next).await
    }

    /// As [`Messages::finish`], for tasks (feature `tokio`).
    ///
    /// # Errors
    /// As [`Messages::finish`].
    pub async fn finish_async(&self) -> io::Result<()> {
        self.close(&mut self.shared.lock());
        let seat = self.signal.seat();
        let finished = |task: &mut Context<'_>| {
            (self.shared).poll(task, &seat, |board| self.try_finish(board))
        };
        poll_fn(finished).await
    }
}
