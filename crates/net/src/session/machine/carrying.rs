//! The news of a path for the inner machine, which it is told after the application.

use super::Session;
use crate::session::config::PeerIndex;
use crate::session::event::SessionEvent;
use crate::session::sizes::Sizes;
use fulmar_proto::machine::{Carried, PathSizes};
use fulmar_proto::units::Instant;
use fulmar_settings::with_keys;

/// The part of an event that concerns the inner machine.
#[derive(Clone, Copy, Debug)]
pub(super) enum News {
    Reach { peer: PeerIndex, held: bool },
    Sizes { peer: PeerIndex, sizes: Sizes },
    Restarted(PeerIndex),
}

impl News {
    pub(super) const fn of<E>(event: &SessionEvent<E>) -> Option<Self> {
        match event {
            SessionEvent::LinkDown { peer, .. } | SessionEvent::Closed(peer) => Some(Self::Reach {
                peer: *peer,
                held: true,
            }),
            SessionEvent::Up { peer, .. } | SessionEvent::LinkUp { peer, .. } => {
                Some(Self::Reach {
                    peer: *peer,
                    held: false,
                })
            }
            SessionEvent::MtuChanged { peer, sizes }
            | SessionEvent::ParityChanged { peer, sizes } => Some(Self::Sizes {
                peer: *peer,
                sizes: *sizes,
            }),
            SessionEvent::PeerRestarted(peer) => Some(Self::Restarted(*peer)),
            _ => None,
        }
    }
}

impl<M: Carried> Session<M> {
    /// Tells the inner machine in which form to speak to a peer, if the keys in use, or their end, have changed that.
    /// Returns whether they have; then other sizes hold. Unlike other news it is told at once, since the next datagram is
    /// sealed under those keys. While there are none, only early data may leave, whose form is the long one.
    pub(super) fn agree_on_form(&mut self, now: Instant, index: usize) -> bool {
        let Some(state) = self.peers.get_mut(index) else {
            return false;
        };
        let wire = state.keys.wire().unwrap_or_default();
        if state.wire == wire {
            return false;
        }
        state.wire = wire;
        // Pieces in one form and pieces in the other never make a whole.
        state.reassembly.clear();
        let path = state.index.inner_path();
        self.inner.speak(now, path, wire.form());
        true
    }

    /// Forgets the keys of a peer, which has forgotten them or may not have them any more.
    pub(super) fn forget_keys(&mut self, now: Instant, index: usize) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        state.keys.clear();
        self.part_paths(now, index);
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        state.announced = false;
        state.challenge = None;
        let has_new_form = self.agree_on_form(now, index);
        if self.agree_on_parity(index, &[]) || has_new_form {
            self.say_sizes(index);
        }
        self.agree_on_claims(index);
    }

    /// Passes on the news of the last event, now that the application has heard it. Until then the application could
    /// look at the inner machine as it was.
    pub(super) fn carry_news(&mut self) {
        let Some(news) = self.news.take() else {
            return;
        };
        match news {
            News::Reach { peer, held } => {
                // The others may be up while the first is not; and what comes does not end what the link tells.
                let held = self.peer(peer).map_or(held, |state| {
                    let decides = !state.further.is_empty() || state.liveness.is_told_down();
                    if decides {
                        state.liveness.is_down()
                    } else {
                        held
                    }
                });
                self.inner.hold(self.now, peer.inner_path(), held);
            }
            News::Restarted(peer) => self.inner.peer_restarted(self.now, peer.inner_path()),
            News::Sizes { peer, sizes } => {
                let sizes = PathSizes {
                    tpdu_bytes_max: sizes.payload.as_usize(),
                    lower_overhead: sizes.overhead(),
                };
                let set = self
                    .inner
                    .set_path_sizes(self.now, peer.inner_path(), sizes);
                if let Err(why) = set {
                    let why = with_keys(&[("tpdu_bytes_max", "the path's MTU")], &why);
                    self.events
                        .push_front(SessionEvent::TooNarrow { peer, why });
                }
            }
        }
    }
}
