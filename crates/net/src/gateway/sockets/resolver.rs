//! Names to addresses, on threads of their own: the system's resolver may take seconds. One resolver looks for the
//! destinations of flows, another for peers.
//!
//! # Promises
//! - The loop never waits for a name.
//! - Names whose servers do not answer hold up the peer that asks for them and, up to [`THREADS_MAX`] threads, no
//!   other: a peer has at most [`AT_ONCE`] names looked up at once and [`WAITING_MAX`] waiting, and peers take turns.

use crate::wait::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::Bound;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

const AT_ONCE: usize = 4;
const THREADS_MAX: usize = 64;
const WAITING_MAX: usize = 64;

/// A name that somebody waits for.
#[derive(Debug)]
pub(in crate::gateway) struct Question<T> {
    /// The peer whose client asks, or whose name it is.
    pub(in crate::gateway) peer: usize,
    /// The mark by which the answer is recognised.
    pub(in crate::gateway) tag: T,
    pub(in crate::gateway) name: String,
    pub(in crate::gateway) port: u16,
}

/// The answer for a name.
#[derive(Debug)]
pub(in crate::gateway) struct Answer<T> {
    /// The question's mark.
    pub(in crate::gateway) tag: T,
    /// The addresses in the system's order of preference; none if the name is unknown.
    pub(in crate::gateway) addresses: io::Result<Vec<SocketAddr>>,
}

/// The function that asks the system for a name and port.
type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

#[derive(Debug)]
struct Queue<T> {
    /// Questions that wait, by peer; no queue is empty.
    waiting: BTreeMap<usize, VecDeque<Question<T>>>,
    /// Names looked up now, by peer; none is 0.
    under_way: BTreeMap<usize, usize>,
    /// The peer that was served last.
    last: usize,
    threads: usize,
    idle: usize,
    is_over: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            under_way: BTreeMap::new(),
            last: 0,
            threads: 0,
            idle: 0,
            is_over: false,
        }
    }
}

impl<T> Queue<T> {
    /// The next question of the peer whose turn it is.
    fn take_next(&mut self) -> Option<Question<T>> {
        let is_free = |peer: &usize| self.under_way.get(peer).is_none_or(|n| *n < AT_ONCE);
        let after = (Bound::Excluded(self.last), Bound::Unbounded);
        let mut peers = self
            .waiting
            .range(after)
            .chain(self.waiting.range(..=self.last));
        let peer = *peers.find(|(peer, _)| is_free(peer))?.0;
        let questions = self.waiting.get_mut(&peer)?;
        let question = questions.pop_front();
        if questions.is_empty() {
            self.waiting.remove(&peer);
        }
        self.last = peer;
        *self.under_way.entry(peer).or_default() += 1;
        question
    }

    fn done(&mut self, peer: usize) {
        if let Some(count) = self.under_way.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&peer);
            }
        }
    }
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    news: Condvar,
    lookup: Box<Lookup>,
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        // Nothing can panic while the lock is held, so a poisoned lock does no harm.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The front end of the threads.
pub(in crate::gateway) struct Resolver<T> {
    shared: Arc<Shared<T>>,
    waker: Waker,
    reply: Sender<Answer<T>>,
    answers: Receiver<Answer<T>>,
}

impl<T: core::fmt::Debug> core::fmt::Debug for Resolver<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Resolver")
            .field(&self.shared.queue())
            .finish()
    }
}

impl<T: Copy + Send + 'static> Resolver<T> {
    /// Asks the system. Answers call `waker`. Threads begin when they are needed.
    pub(in crate::gateway) fn new(waker: &Waker) -> io::Result<Self> {
        Self::asking(waker, |name, port| {
            (name, port).to_socket_addrs().map(Iterator::collect)
        })
    }

    /// Asks `lookup` for a name and port.
    pub(in crate::gateway) fn asking(
        waker: &Waker,
        lookup: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (reply, answers) = channel();
        Ok(Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                news: Condvar::new(),
                lookup: Box::new(lookup),
            }),
            waker: waker.try_clone()?,
            reply,
            answers,
        })
    }

    /// Asks; `false` if too many names of this peer wait already.
    pub(in crate::gateway) fn ask(&self, question: Question<T>) -> bool {
        let mut queue = self.shared.queue();
        let waiting = queue.waiting.entry(question.peer).or_default();
        if waiting.len() >= WAITING_MAX {
            return false;
        }
        waiting.push_back(question);
        let waiting: usize = queue.waiting.values().map(VecDeque::len).sum();
        if queue.idle < waiting && queue.threads < THREADS_MAX {
            // Without a further thread the answers are slower.
            queue.threads += usize::from(self.begin_thread().is_ok());
        }
        self.shared.news.notify_one();
        queue.threads > 0
    }

    fn begin_thread(&self) -> io::Result<()> {
        let (shared, reply) = (Arc::clone(&self.shared), self.reply.clone());
        let waker = self.waker.try_clone()?;
        thread::Builder::new()
            .name("names".to_owned())
            .spawn(move || serve(&shared, &reply, &waker))?;
        Ok(())
    }

    /// The next answer that has come.
    pub(in crate::gateway) fn poll(&self) -> Option<Answer<T>> {
        self.answers.try_recv().ok()
    }
}

impl<T> Drop for Resolver<T> {
    fn drop(&mut self) {
        self.shared.queue().is_over = true;
        self.shared.news.notify_all();
    }
}

fn serve<T: Copy>(shared: &Shared<T>, reply: &Sender<Answer<T>>, waker: &Waker) {
    let mut queue = shared.queue();
    while !queue.is_over {
        let Some(question) = queue.take_next() else {
            queue.idle += 1;
            let woken = shared.news.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
            continue;
        };
        drop(queue);
        let answer = Answer {
            tag: question.tag,
            addresses: (shared.lookup)(&question.name, question.port),
        };
        // Without a reader the gateway has ended, and the queue ends with it.
        let is_heard = reply.send(answer).is_ok() && waker.wake().is_ok();
        queue = shared.queue();
        queue.done(question.peer);
        if !is_heard {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::{Interest, wait, waker};
    use std::os::fd::AsFd;
    use std::time::Duration;

    /// Far beyond what any answer takes; it turns a hang into a failure.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn question(peer: usize, n: u8, name: &str) -> Question<u8> {
        Question {
            peer,
            tag: n,
            name: name.to_owned(),
            port: 80,
        }
    }

    /// A gate that lookups of "slow" wait at.
    #[derive(Default)]
    struct Gate {
        is_open: Mutex<bool>,
        opened: Condvar,
    }

    impl Gate {
        fn pass(&self) {
            let is_open = self.is_open.lock().unwrap();
            drop(self.opened.wait_while(is_open, |open| !*open).unwrap());
        }

        fn open(&self) {
            *self.is_open.lock().unwrap() = true;
            self.opened.notify_all();
        }
    }

    #[test]
    fn a_peer_whose_names_are_never_answered_holds_up_itself_alone() {
        let (waker, wake_up) = waker().unwrap();
        let gate = Arc::new(Gate::default());
        let at_gate = Arc::clone(&gate);
        let lookup = move |name: &str, port: u16| {
            if name == "slow" {
                at_gate.pass();
            }
            Ok(vec![([192, 0, 2, 1], port).into()])
        };
        let resolver = Resolver::asking(&waker, lookup).unwrap();
        let next = || loop {
            if let Some(answer) = resolver.poll() {
                return answer;
            }
            let source = (wake_up.as_fd(), Interest::Readable);
            let mut ready = Vec::new();
            wait(&[source], Some(PATIENCE), &mut ready).unwrap();
            assert!(ready[0].readable, "waited in vain");
            wake_up.clear();
        };
        // Ten peers that ask for all they may.
        let mut slow = 0;
        for peer in 0..10 {
            while resolver.ask(question(peer, 1, "slow")) {
                slow += 1;
            }
        }
        assert!(slow >= 10 * WAITING_MAX, "{slow}");
        for n in 2..200 {
            assert!(resolver.ask(question(10, n, "fast")));
            assert_eq!(next().tag, n);
        }
        gate.open();
        for _ in 0..slow {
            assert_eq!(next().tag, 1);
        }
        assert!(resolver.shared.queue().waiting.is_empty());
    }

    #[test]
    fn peers_take_turns() {
        let mut queue = Queue::default();
        for peer in [7, 7, 7, 8, 9] {
            let of_peer = queue.waiting.entry(peer).or_default();
            of_peer.push_back(question(peer, 0, ""));
        }
        let order: Vec<usize> = core::iter::from_fn(|| queue.take_next().map(|q| q.peer)).collect();
        assert_eq!(order, [7, 8, 9, 7, 7]);
        for _ in 0..3 {
            queue.done(7);
        }
        assert_eq!(queue.under_way.len(), 2);
    }
}
