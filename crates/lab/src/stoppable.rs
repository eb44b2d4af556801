//! A file whose reading can be given up.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, Read};

/// A source that ends with an error once it is to stop: long files are read in one call.
#[derive(Debug)]
pub struct StoppableReader<'a, R> {
    source: R,
    stop: &'a AtomicBool,
}

impl<'a, R> StoppableReader<'a, R> {
    /// The source, to be read until `stop` is set.
    pub const fn new(source: R, stop: &'a AtomicBool) -> Self {
        Self { source, stop }
    }
}

impl<R: Read> Read for StoppableReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("it was given up"));
        }
        self.source.read(into)
    }
}
