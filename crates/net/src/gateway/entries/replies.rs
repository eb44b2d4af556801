//! The replies to a proxy's client whose flow the other side has connected or refused.

use super::socks::{codec, no_address};
use crate::gateway::flows::{Body, Floor, Traffic};
use fulmar_proto::splice::{FlowId, RefuseCode};
use std::io::Write;
use std::net::SocketAddr;

/// A flow's destination was connected to at the other side, from its address `bound`.
pub(in crate::gateway) fn connected(
    floor: &Floor<'_>,
    traffic: &mut Traffic,
    id: FlowId,
    bound: SocketAddr,
) {
    let reply = codec::reply(codec::Reply::Succeeded, bound);
    traffic.begin_held(floor.config, id, reply);
    traffic.flows.wake(id);
}

/// A peer has refused a flow: a proxy's client is told.
pub(in crate::gateway) fn refused(
    floor: &mut Floor<'_>,
    traffic: &mut Traffic,
    id: FlowId,
    code: RefuseCode,
) {
    let Some(flow) = traffic.flows.get_mut(id) else {
        return;
    };
    let (destination, peer) = (flow.destination.clone(), flow.peer);
    let mut rst = true;
    if flow.proxied
        && let Body::Stream(stream) = &mut flow.body
        && stream.is_held()
    {
        // A proxy tells the reason, and closes in the ordinary way so that the answer arrives.
        let reply = codec::reply(code.into(), no_address());
        rst = stream
            .socket()
            .is_none_or(|mut client| client.write(&reply).is_err());
    }
    if let Some(skipped) = floor.repeats.may_for(floor.now, "refused", code.name()) {
        let cure = (code == RefuseCode::NotAllowed).then(|| {
            format!(
                "the log of `{}` says what would allow it",
                floor.config.peer_name(peer)
            )
        });
        tracing::info!(event = "flow_refused", %destination, reason = code.name(), cure, skipped);
    }
    traffic.drop_flow(floor, id, code.name(), rst);
}
