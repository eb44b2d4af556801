//! Flows that outlive the gateway: what the keeper is given of one that begins, and how one is left at the end.

use super::floor::Floor;
use super::flow::{Body, Flow};
use super::flow_record::FlowRecord;
use super::traffic::Traffic;
use crate::gateway::config::GatewayConfig;
use crate::gateway::sockets::kernel;
use crate::keeper::{Baseline, SocketRecord};
use fulmar_proto::splice::{FlowId, Role};
use std::io;

/// The place in a connection from which the keeper's record counts.
#[derive(Debug)]
enum Begins {
    /// Here.
    At(Baseline),
    /// Unknown now: ask again.
    Later,
    /// Unknown for ever.
    Never(io::Error),
}

/// The place that a reading of the kernel's counters gives. They do not stand still while a client sends all the time.
/// Nothing was read yet of a flow of no proxy. A proxy's client is silenced by its full window, for nothing is read while it
/// waits for the reply.
fn begins(read: io::Result<Baseline>, role: Role, proxied: bool) -> Begins {
    match read {
        Ok(baseline) => Begins::At(baseline),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            if proxied {
                Begins::Later
            } else {
                Begins::At(Baseline::fresh(role))
            }
        }
        Err(error) => Begins::Never(error),
    }
}

impl Traffic {
    /// Gives the keeper the socket of a flow that may outlive this gateway, before the flow's first
    /// octet passes. `preface` is what we are about to say to the client, which then is held no more. `false` if it is
    /// to be tried again.
    pub(in crate::gateway) fn keep(
        &mut self,
        config: &GatewayConfig,
        id: FlowId,
        preface: Vec<u8>,
    ) -> bool {
        let Some(flow) = self.flows.get(id) else {
            return true;
        };
        let Body::Stream(stream) = &flow.body else {
            return true;
        };
        let Some(socket) = stream.socket().filter(|_| stream.is_durable()) else {
            return true;
        };
        let role = if flow.entered {
            Role::Opener
        } else {
            Role::Acceptor
        };
        let note = FlowRecord {
            role,
            peer: config.peer_name(flow.peer).to_owned(),
            destination: flow.destination.clone(),
            class: flow.class,
            bound: socket.local_addr().ok().filter(|_| role == Role::Acceptor),
            received: 0,
            held: stream.is_held() && preface.is_empty(),
            partner: None,
            preface,
        };
        let baseline = match begins(Baseline::of(socket, role), role, flow.proxied) {
            Begins::At(baseline) => baseline,
            Begins::Later => return false,
            Begins::Never(error) => {
                tracing::error!(event = "not_kept", %id, %error);
                return true;
            }
        };
        let record = SocketRecord {
            role,
            baseline: Baseline {
                // A proxy's request is not part of the flow, even while it is unread.
                taken: baseline.taken + stream.ahead(),
                ..baseline
            },
            note: note.encode(),
        };
        self.keeping.keep(id, socket, record);
        true
    }

    /// At the end, leaves a flow that can go on to the next gateway. Without a keeper its client gets a reset,
    /// since an end would be a lie; its octets stay in any case.
    pub(in crate::gateway) fn leave_to_the_next(
        &mut self,
        floor: &mut Floor<'_>,
        id: FlowId,
    ) -> bool {
        if !self.flows.get(id).is_some_and(Flow::is_durable) {
            return false;
        }
        let Some(flow) = self.flows.remove(id) else {
            return false;
        };
        // A relay needs no keeper.
        self.left |= matches!(flow.body, Body::Stream(_));
        self.newsbox.ended(floor.now, &flow, "left_to_the_next");
        if let Body::Stream(stream) = flow.body
            && let (Some(socket), _) = stream.into_parts()
            && !self.keeping.has_keeper()
        {
            kernel::reset(socket);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_sends_all_the_time_is_kept_all_the_same() {
        let restless = || Err(io::Error::from(io::ErrorKind::WouldBlock));
        let plain = begins(restless(), Role::Opener, false);
        assert!(
            matches!(plain, Begins::At(from) if from == Baseline::fresh(Role::Opener)),
            "{plain:?}"
        );
        let proxied = begins(restless(), Role::Opener, true);
        assert!(matches!(proxied, Begins::Later), "{proxied:?}");
        let broken = Err(io::Error::from(io::ErrorKind::NotConnected));
        let broken = begins(broken, Role::Opener, false);
        assert!(matches!(broken, Begins::Never(_)), "{broken:?}");
    }
}
