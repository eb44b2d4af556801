//! The look whether a disk that was full has room again.
//!
//! # Promises
//! - It is made on a thread of its own: a disk that hangs delays nobody who asked for it.
//! - One look at most is under way.

use super::disk::{Disk, write_all};
use super::space::{SPARE_BYTES, Space};
use crate::wait::Waker;
use fulmar_proto::rng::Rng;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The file that a full disk is tried with.
const TRIAL: &str = "trial";

/// Looks at one disk.
#[derive(Debug)]
pub(super) struct RoomLook {
    disk: Arc<dyn Disk>,
    space: Arc<Space>,
    /// Called when there is room.
    waker: Option<Waker>,
    under_way: Mutex<Option<JoinHandle<()>>>,
}

impl RoomLook {
    pub(super) fn new(disk: Arc<dyn Disk>, space: Arc<Space>, waker: Option<Waker>) -> Self {
        Self {
            disk,
            space,
            waker,
            under_way: Mutex::default(),
        }
    }

    /// Begins a look, unless one is under way. Room is announced once it was found.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn begin(&self) -> io::Result<()> {
        let mut under_way = self.under_way();
        if under_way.as_ref().is_some_and(|look| !look.is_finished()) {
            return Ok(());
        }
        let (disk, space) = (Arc::clone(&self.disk), Arc::clone(&self.space));
        let waker = self.waker.as_ref().map(Waker::try_clone).transpose()?;
        let look = move || {
            // After any other fault the disk counts as full until a later look; flows meet the fault themselves.
            if takes(&*disk, SPARE_BYTES).is_ok() {
                space.took(SPARE_BYTES);
                // A loop that is gone needs no call.
                drop(waker.map(|waker| waker.wake()));
            }
        };
        let thread = std::thread::Builder::new().name("custody-room".to_owned());
        *under_way = Some(thread.spawn(look)?);
        Ok(())
    }

    /// Waits until no look is under way.
    pub(super) fn wait(&self) {
        if let Some(look) = self.under_way().take() {
            // A panic of the thread was printed there.
            drop(look.join());
        }
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RoomLook {
    /// The thread has the directory, which another store may ask for next.
    fn drop(&mut self) {
        self.wait();
    }
}

/// Writes so many octets into a file and removes it.
fn takes(disk: &dyn Disk, octets: usize) -> io::Result<()> {
    // A kill may have left one.
    match disk.remove(TRIAL) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = disk.create(TRIAL)?;
    // A disk that compresses would take zeros for nothing.
    let mut piece = vec![0; octets];
    Rng::from_seed(0).fill(&mut piece);
    let written = write_all(&*file, &mut [IoSlice::new(&piece)], 0);
    disk.remove(TRIAL)?;
    written
}

#[cfg(test)]
mod tests {
    use super::super::disk::DiskFile;
    use super::*;
    use core::time::Duration;
    use fulmar_proto::units::ByteCount;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    /// Far longer than a thread needs to begin.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A disk whose calls return when they are let go on.
    #[derive(Debug)]
    struct Hanging {
        let_go: Mutex<Receiver<()>>,
        calls: AtomicUsize,
        waited_in_vain: AtomicUsize,
    }

    impl Disk for Hanging {
        fn remove(&self, _name: &str) -> io::Result<()> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            let let_go = self.let_go.lock().expect("no panic before");
            if let_go.recv_timeout(PATIENCE).is_err() {
                self.waited_in_vain.fetch_add(1, Ordering::Relaxed);
            }
            Err(ErrorKind::NotFound.into())
        }
        fn create(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
            Err(ErrorKind::StorageFull.into())
        }
        fn list(&self) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }
        fn open(&self, _name: &str) -> io::Result<Arc<dyn DiskFile>> {
            Err(ErrorKind::NotFound.into())
        }
        fn sync_names(&self) -> io::Result<()> {
            Ok(())
        }
        fn set_aside(&self, _name: &str, _aside: &str) -> io::Result<u64> {
            Err(ErrorKind::NotFound.into())
        }
        fn list_aside(&self) -> io::Result<Vec<(String, u64)>> {
            Ok(Vec::new())
        }
        fn remove_aside(&self, _aside: &str) -> io::Result<()> {
            Err(ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn a_disk_that_hangs_delays_nobody_who_looks_for_room_and_is_looked_at_once() {
        let (let_go, waits) = channel();
        let disk = Arc::new(Hanging {
            let_go: Mutex::new(waits),
            calls: AtomicUsize::new(0),
            waited_in_vain: AtomicUsize::new(0),
        });
        let space = Arc::new(Space::new("/simulated".into(), ByteCount(1 << 20)));
        let shared: Arc<dyn Disk> = Arc::<Hanging>::clone(&disk);
        let look = RoomLook::new(shared, space, None);
        look.begin().expect("a thread");
        // The first one is under way: it ends only with the next line but one.
        look.begin().expect("nothing to do");
        let_go.send(()).expect("the disk is there");
        look.wait();
        assert_eq!(disk.waited_in_vain.load(Ordering::Relaxed), 0);
        assert_eq!(disk.calls.load(Ordering::Relaxed), 1);
        // A later one is another.
        look.begin().expect("a thread");
        let_go.send(()).expect("the disk is there");
        look.wait();
        assert_eq!(disk.calls.load(Ordering::Relaxed), 2);
    }
}
