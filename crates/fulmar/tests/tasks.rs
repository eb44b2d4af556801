//! The calls of tasks, on one thread and on several, over a link that loses packets.
#![cfg(feature = "tokio")]

use crate::link::{octets, pair};
use fulmar::{Endpoint, Priority};
use std::io::ErrorKind;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn tasks_carry_megabytes_both_ways_over_a_fifth_of_loss() {
    let (link, server, client, key) = pair(0.2);
    let listener = server.listen().unwrap();
    let sent = octets(1_000_000);
    let calling = async {
        let stream = client.connect_async(link.address, &key.public()).await;
        let (mut reading, mut writing) = tokio::io::split(stream.unwrap());
        let write = async {
            writing.write_all(&sent).await.unwrap();
            writing.shutdown().await.unwrap();
        };
        let mut back = Vec::new();
        let read = reading.read_to_end(&mut back);
        let ((), read) = tokio::join!(write, read);
        read.unwrap();
        back
    };
    let answering = async {
        let stream = listener.accept_async().await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(stream);
        tokio::io::copy(&mut reading, &mut writing).await.unwrap();
        writing.shutdown().await.unwrap();
    };
    let both = async { tokio::join!(calling, answering) };
    let (back, ()) = timeout(PATIENCE, both).await.unwrap();
    assert!(back == sent);
    tokio::join!(client.close_async(), server.close_async());
    let error = listener.accept_async().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_send_and_receive_messages() {
    let (link, server, client, key) = pair(0.2);
    let listener = server.listen().unwrap();
    let messages = client.messages(link.address, &key.public()).unwrap();
    let collecting = tokio::spawn(async move {
        let other = listener.accept_messages_async().await.unwrap();
        let mut lens = Vec::new();
        while let Some(message) = other.receive_async().await.unwrap() {
            lens.push(message.len());
        }
        lens
    });
    // More than may wait at once, so that the sender has to.
    let content = octets(65_536);
    for n in 0..40 {
        let sent = messages.send_async(&content[n..], PATIENCE, Priority(0));
        sent.await.unwrap();
    }
    messages.finish_async().await.unwrap();
    let lens = timeout(PATIENCE, collecting).await.unwrap().unwrap();
    assert!(lens.into_iter().eq((0..40).map(|n| 65_536 - n)));
    let error = messages.send_async(b"more", PATIENCE, Priority(0)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

/// A task's waker that calls the endpoint, as one may that polls at once.
struct Caller {
    endpoint: Weak<Endpoint>,
    woken: Sender<()>,
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.epoch_seen();
        }
        self.woken.send(()).expect("the test counts");
    }
}

#[test]
fn any_number_of_tasks_waits_without_a_wake_and_each_is_woken_once_outside_the_locks() {
    let (link, server, client, key) = pair(0.0);
    let (server, (woken, wakes)) = (Arc::new(server), channel());
    let listener = server.listen().unwrap();
    let mut waiting: Vec<_> = (0..100)
        .map(|_| Box::pin(listener.accept_async()))
        .collect();
    for future in &mut waiting {
        let endpoint = Arc::downgrade(&server);
        let woken = woken.clone();
        let waker = Waker::from(Arc::new(Caller { endpoint, woken }));
        // Asked twice, it waits once.
        for _ in 0..2 {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
    }
    assert!(wakes.try_recv().is_err(), "a task that waits wakes nobody");
    // Dropped futures leave no place behind.
    waiting.truncate(80);
    let stream = client.connect(link.address, &key.public()).unwrap();
    for _ in 0..80 {
        wakes.recv_timeout(PATIENCE).unwrap();
    }
    // The next accept shows that what came was told.
    let accepted = listener.accept(Some(PATIENCE)).unwrap();
    assert!(wakes.try_recv().is_err(), "each once");
    drop((waiting, accepted, stream));
}
