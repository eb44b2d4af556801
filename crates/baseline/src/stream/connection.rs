//! The way from an application's calls, and from timers, to the halves of a connection.

/// The endpoint's reaction to a segment, besides draining the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentReply {
    /// Nothing.
    None,
    /// Answer with a reset.
    Reset,
}

/// Implements [`StreamConnection`](super::StreamConnection), and an application's calls, for a
/// connection with `states`, a `config`, a `sender` and a `receiver`, whose types differ. `owes` is
/// the reason for its deadline when it waits for more segments to answer.
macro_rules! stream_connection {
    ($connection:ty, $ledger:ty, owes $owes:literal) => {
        impl $connection {
            /// Writes as much of `octets` as fits.
            pub(super) fn write(
                &mut self,
                octets: &[u8],
            ) -> Result<usize, $crate::tcp::TcpWriteError> {
                self.states.check_write(self.sender.is_finishing())?;
                let taken = self.sender.write(octets);
                self.states.on_written(taken, octets.len());
                Ok(taken)
            }

            /// Takes the next octets in order.
            pub(super) fn read(&mut self) -> Option<Vec<u8>> {
                let chunk = self.receiver.read();
                self.tell_finish();
                chunk
            }

            /// Takes back a vector for reuse.
            pub(super) fn recycle(&mut self, octets: Vec<u8>) {
                self.receiver.recycle(octets);
            }

            /// Notes that no more will be written.
            pub(super) fn close(&mut self) {
                if self.states.close(self.sender.is_all_acked()) {
                    self.sender.finish();
                }
            }

            /// Tells the application that the peer's stream is over, once all of it was read.
            fn tell_finish(&mut self) {
                if self.receiver.is_finished() && !self.receiver.is_readable() {
                    self.states.tell_finish();
                }
            }
        }

        impl $crate::stream::StreamConnection for $connection {
            type Ledger = $ledger;

            fn states(&self) -> &$crate::stream::StreamStates {
                &self.states
            }

            fn states_mut(&mut self) -> &mut $crate::stream::StreamStates {
                &mut self.states
            }

            fn next_deadline(&self) -> Option<fulmar_proto::machine::Deadline> {
                let (owed, sender) = (self.receiver.answers.owed(), self.sender.next_deadline());
                self.states.next_deadline(owed, $owes, sender)
            }

            fn handle_deadline(&mut self, now: fulmar_proto::units::Instant) {
                use $crate::stream::Passed;
                match self.states.handle_deadline(now, self.config.syn_retries) {
                    Passed::End => return,
                    Passed::Syn => self.sender.rtt_mut().on_silence(),
                    Passed::Nothing => {}
                }
                self.receiver.answers.handle_deadline(now);
                if self.states.state().may_send() && !self.sender.handle_deadline(now) {
                    self.states.end($crate::tcp::TcpCloseReason::TimedOut);
                }
            }

            fn book(&self, ledger: &mut $ledger) {
                ledger.book(self);
            }
        }
    };
}

pub(crate) use stream_connection;
