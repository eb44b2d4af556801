//! The news of a path for the inner machine, which it is told after the application.

use super::Session;
use crate::session::config::PeerIndex;
use crate::session::event::SessionEvent;
use crate::session::sizes::Sizes;
use fulmar_proto::machine::{Carried, PathSizes};
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
            SessionEvent::MtuChanged { peer, sizes } => Some(Self::Sizes {
                peer: *peer,
                sizes: *sizes,
            }),
            SessionEvent::PeerRestarted(peer) => Some(Self::Restarted(*peer)),
            _ => None,
        }
    }
}

impl<M: Carried> Session<M> {
    /// Passes on the news of the last event, now that the application has heard it. Until then the application could
    /// look at the inner machine as it was.
    pub(super) fn carry_news(&mut self) {
        let Some(news) = self.news.take() else {
            return;
        };
        match news {
            News::Reach { peer, held } => self.inner.hold(self.now, peer.inner_path(), held),
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
