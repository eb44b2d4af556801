//! Flows whose destination lies behind a further gateway: whether they are carried on, and on which session.

use crate::gateway::flows::{Floor, Onward, Traffic, Wish};
use fulmar_proto::splice::{Destination, FlowClass, FlowId, Host, RefuseCode};

/// Carries a flow on to the next gateway, or refuses it.
pub(super) fn carry_on(floor: &mut Floor<'_>, traffic: &mut Traffic, id: FlowId) {
    let Some(flow) = traffic.flows.get(id) else {
        return;
    };
    let (from, kind, class) = (flow.peer, flow.kind, flow.class);
    match onward(floor, from, &flow.destination, class) {
        Ok((peer, to, class)) => {
            // What the next gateway may count on is this one's disk.
            let class = FlowClass {
                durable: traffic.keeps_on_disk(floor.config, &class),
                ..class
            };
            let wish = Wish {
                peer,
                kind,
                to,
                class,
            };
            traffic.begin_relay(floor, id, &Onward { wish, from });
        }
        Err(reason) => {
            let peer = floor.config.peer_name(from);
            if let Some(skipped) = floor.repeats.may_for(floor.now, "not_relayed", reason) {
                tracing::info!(event = "not_relayed", peer, reason, skipped);
            }
            traffic.give_up(floor, id, RefuseCode::NotAllowed);
        }
    }
}

/// The peer that carries on what `from` asked for, with the destination and the class that it is told.
fn onward(
    floor: &Floor<'_>,
    from: usize,
    destination: &Destination,
    class: FlowClass,
) -> Result<(usize, Destination, FlowClass), &'static str> {
    let Host::Beyond(beyond) = &destination.host else {
        return Err("no_way");
    };
    let next = beyond.gateways().first().ok_or("no_way")?.as_str();
    if !floor.config.egress.relay.iter().any(|name| name == next) {
        return Err("not_permitted");
    }
    let route = floor.config.route_to(next).ok_or("unknown_peer")?;
    if route.peer == from {
        return Err("leads_back");
    }
    // Where the next gateway is itself reached through others, these come first, and then it.
    let host = beyond.onward(&route.beyond).ok_or("too_long")?;
    let hops = match &host {
        Host::Beyond(rest) => rest.gateways().len() + 1,
        Host::Address(_) | Host::Name(_) | Host::Tunnel(_) => 1,
    };
    let known = floor
        .config
        .classes
        .iter()
        .find(|it| it.flow.id == class.id);
    // A goal is not part of the opening: the class here says it, if this gateway knows the class.
    let class = FlowClass {
        thin: class.thin.or_else(|| known?.flow.thin),
        thin_messages: class.thin_messages.or_else(|| known?.flow.thin_messages),
        ..class
    };
    let hops = u32::try_from(hops).unwrap_or(u32::MAX);
    let (class, left) = class.for_one_hop(beyond.left(), hops);
    let host = match host {
        Host::Beyond(rest) => Host::Beyond(Box::new(rest.with_left(left))),
        host => host,
    };
    let port = destination.port;
    Ok((route.peer, Destination { host, port }, class))
}
