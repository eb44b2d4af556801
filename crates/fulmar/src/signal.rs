//! Signals that wake whoever waits for something of a line, or of a listener: threads, and tasks.

use std::sync::{Arc, Condvar};
#[cfg(feature = "tokio")]
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Waker,
};

/// Something that is waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signal(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    threads: Condvar,
    #[cfg(feature = "tokio")]
    tasks: Mutex<Tasks>,
}

impl Signal {
    /// Wakes all that wait: threads at once, tasks when the board is unlocked.
    pub(crate) fn tell(&self) {
        self.0.threads.notify_all();
        #[cfg(feature = "tokio")]
        {
            let waiting = core::mem::take(&mut self.tasks().waiting);
            for (task, bell) in waiting.into_values() {
                bell.due().push(task);
            }
        }
    }

    /// The threads that wait; with the board's lock.
    pub(crate) fn threads(&self) -> &Condvar {
        &self.0.threads
    }
}

#[cfg(feature = "tokio")]
#[derive(Debug, Default)]
struct Tasks {
    seats: u64,
    waiting: BTreeMap<u64, (Waker, Bell)>,
}

#[cfg(feature = "tokio")]
impl Signal {
    pub(crate) fn seat(&self) -> TaskSeat {
        let mut tasks = self.tasks();
        tasks.seats += 1;
        TaskSeat {
            signal: self.clone(),
            id: tasks.seats,
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one future, or of one direction of a stream, among the tasks that wait for a signal: as many can wait
/// as there are, and none stays after it was dropped.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(crate) struct TaskSeat {
    signal: Signal,
    id: u64,
}

#[cfg(feature = "tokio")]
impl TaskSeat {
    /// Wakes `task` with the next signal, and whoever was to be woken before no more: the caller drops it when the
    /// board is unlocked, since a task may go with it. Called with the board locked, so that no signal is missed.
    pub(crate) fn wait(&self, task: &Waker, bell: &Bell) -> Option<Waker> {
        let mut tasks = self.signal.tasks();
        let former = tasks.waiting.insert(self.id, (task.clone(), bell.clone()));
        former.map(|(task, _)| task)
    }
}

#[cfg(feature = "tokio")]
impl Drop for TaskSeat {
    fn drop(&mut self) {
        // What goes with the waker goes when the lock is free again.
        let former = self.signal.tasks().waiting.remove(&self.id);
        drop(former);
    }
}

/// The tasks that are to be woken when the board is unlocked: waking may run whatever the runtime likes.
#[cfg(feature = "tokio")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Bell(Arc<Mutex<Vec<Waker>>>);

#[cfg(feature = "tokio")]
impl Bell {
    fn due(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rings a bell when it is dropped.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(crate) struct Ring<'b>(pub(crate) &'b Bell);

#[cfg(feature = "tokio")]
impl Drop for Ring<'_> {
    fn drop(&mut self) {
        let due = core::mem::take(&mut *self.0.due());
        for task in due {
            task.wake();
        }
    }
}
