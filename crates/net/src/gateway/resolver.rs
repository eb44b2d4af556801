//! Names to addresses, on a few threads of their own: the system's resolver may take seconds.
//!
//! # Promises
//! - The loop never waits for a name.
//! - At most [`QUEUE_MAX`] names wait; more are refused at once.

use crate::wait::Waker;
use fulmar_proto::splice::FlowId;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

const THREADS: usize = 4;
const QUEUE_MAX: usize = 256;

/// A name that somebody waits for.
#[derive(Debug)]
struct Question {
    flow: FlowId,
    name: String,
    port: u16,
}

/// What became of a name.
#[derive(Debug)]
pub(super) struct Answer {
    /// Who asked.
    pub(super) flow: FlowId,
    /// In the order of the system's preference; empty if the name is unknown.
    pub(super) addresses: Vec<SocketAddr>,
}

/// The threads' front.
#[derive(Debug)]
pub(super) struct Resolver {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
}

impl Resolver {
    /// Starts the threads; each answer calls `waker`.
    pub(super) fn start(waker: &Waker) -> io::Result<Self> {
        let (questions, queue) = sync_channel::<Question>(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let (reply, answers) = channel();
        for number in 0..THREADS {
            let (queue, reply, waker) = (Arc::clone(&queue), reply.clone(), waker.try_clone()?);
            thread::Builder::new()
                .name(format!("names-{number}"))
                .spawn(move || serve(&queue, &reply, &waker))?;
        }
        Ok(Self { questions, answers })
    }

    /// Asks; `false` if too many names wait already.
    pub(super) fn ask(&self, flow: FlowId, name: &str, port: u16) -> bool {
        let question = Question {
            flow,
            name: name.to_owned(),
            port,
        };
        match self.questions.try_send(question) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }

    /// The next answer that has come.
    pub(super) fn poll(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

fn serve(queue: &Mutex<Receiver<Question>>, reply: &Sender<Answer>, waker: &Waker) {
    loop {
        // Nothing can panic while it is held, so that a poisoned lock is as good as any.
        let question = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = question else {
            return;
        };
        let found = (question.name.as_str(), question.port).to_socket_addrs();
        let answer = Answer {
            flow: question.flow,
            addresses: found.map(Iterator::collect).unwrap_or_default(),
        };
        // Without a reader the gateway has ended, and the queue ends with it.
        if reply.send(answer).is_err() || waker.wake().is_err() {
            return;
        }
    }
}
