//! Octets from a stream's socket into custody, or straight into the flow.
//!
//! Where custody outlives the process, octets are looked at, appended, and only then taken out of the
//! socket. A kill between these steps leaves some octets in both places, but none in neither. Octets in both are
//! taken out of the socket before anything else is read.

use super::{Fault, Stream, TURN_BYTES, later};
use fulmar_proto::splice::{FlowId, Splicer};
use fulmar_proto::units::Instant;
use std::io::{self, ErrorKind, Read};

impl Stream {
    /// Moves octets from the socket into custody or the flow.
    pub(super) fn take_in(
        &mut self,
        now: Instant,
        flow: FlowId,
        splicer: &mut Splicer,
        scratch: &mut [u8],
    ) -> Result<bool, Fault> {
        self.skip(scratch)?;
        if self.unheard && !self.is_durable() {
            return Ok(self.take_out(scratch)?);
        }
        let mut moved = 0;
        self.starved = false;
        while self.readable && !self.ended && moved < TURN_BYTES {
            if self.is_durable() {
                self.consume_safe(scratch)?;
                if self.unsafe_bytes() > 0 {
                    self.starved = true;
                    return Ok(false);
                }
            }
            let room = match &self.custody {
                Some(custody) => custody.room(),
                None => splicer.capacity(flow),
            };
            let room = room.min(scratch.len());
            if room == 0 {
                self.starved = self.custody.is_some();
                return Ok(false);
            }
            let Some(socket) = &mut self.socket else {
                return Ok(false);
            };
            let came = match &self.custody {
                Some(custody) if custody.is_durable() => socket.peek(&mut scratch[..room]),
                _ => socket.read(&mut scratch[..room]),
            };
            match came {
                Ok(0) => {
                    self.ended = true;
                    if let Some(custody) = &mut self.custody {
                        custody.finish().map_err(Fault::Custody)?;
                    }
                }
                Ok(len) => {
                    let octets = &scratch[..len];
                    let taken = match &mut self.custody {
                        Some(custody) => custody.append(octets).map_err(Fault::Custody)?,
                        None => splicer.accept(now, flow, octets),
                    };
                    moved += taken;
                    if self.is_durable() {
                        if taken == 0 {
                            // The disk has less room than the store's limit says.
                            self.starved = true;
                            return Ok(false);
                        }
                    } else {
                        debug_assert_eq!(taken, len, "there was room for them");
                        self.read += len as u64;
                    }
                }
                Err(error) if later(&error) => self.readable = false,
                Err(error) => return Err(error.into()),
            }
        }
        if self.is_durable() {
            self.consume_safe(scratch)?;
        }
        Ok(self.readable && !self.ended)
    }

    /// Takes out of the socket the octets that lie before the flow's.
    fn skip(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        while self.ahead > 0
            && let Some(socket) = &mut self.socket
        {
            let most = usize::try_from(self.ahead).unwrap_or(usize::MAX);
            let most = most.min(scratch.len());
            match socket.read(&mut scratch[..most]) {
                Ok(len @ 1..) => self.ahead -= len as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // They were all in the socket when they were counted.
                Ok(_) => return Err(io::Error::other("octets left the socket by themselves")),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Drops octets from the socket, so that the local host need not wait: it may read only after it
    /// has written. Octets that custody on disk counts stay in the socket, where the next gateway looks for them.
    fn take_out(&mut self, scratch: &mut [u8]) -> io::Result<bool> {
        let mut moved = 0;
        while self.readable && !self.ended && moved < TURN_BYTES {
            let Some(socket) = &mut self.socket else {
                return Ok(false);
            };
            match socket.read(scratch) {
                Ok(0) => self.ended = true,
                Ok(len) => {
                    self.read += len as u64;
                    moved += len;
                }
                Err(error) if later(&error) => self.readable = false,
                Err(error) => return Err(error),
            }
        }
        Ok(self.readable && !self.ended)
    }

    /// The octets that custody has and that must still be taken out of the socket.
    pub(super) fn unsafe_bytes(&self) -> u64 {
        let durable = self.custody.as_deref().filter(|c| c.is_durable());
        durable.map_or(0, |custody| custody.end().saturating_sub(self.read))
    }

    /// Takes out of the socket the octets that are safe in custody: after a kill, some may be from before.
    fn consume_safe(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        let (Some(custody), Some(socket)) = (&self.custody, &mut self.socket) else {
            return Ok(());
        };
        while let Some(left) = custody.safe_end().checked_sub(self.read).filter(|n| *n > 0) {
            let most = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(scratch.len());
            match socket.read(&mut scratch[..most]) {
                Ok(0) => return Err(io::Error::other("octets left the socket by themselves")),
                Ok(len) => self.read += len as u64,
                Err(error) if later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
