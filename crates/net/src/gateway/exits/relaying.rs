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
    let hops = u32::try_from(hops).unwrap_or(u32::MAX);
    let class = with_own_goal(
        class,
        known.map(|it| it.flow),
        u32::from(beyond.passed()) + 1 + hops,
    );
    let (class, left) = class.for_one_hop(beyond.left(), hops);
    let host = match host {
        Host::Beyond(rest) => Host::Beyond(Box::new(rest.with_left(left))),
        host => host,
    };
    let port = destination.port;
    Ok((route.peer, Destination { host, port }, class))
}

/// The class as one of `hops` hops in all has it. A goal is not part of an opening: the class here says it, if this gateway knows
/// the class; one that the peer told is of one hop already.
fn with_own_goal(class: FlowClass, own: Option<FlowClass>, hops: u32) -> FlowClass {
    let own = own.map(|own| own.with_misses_shared(hops));
    FlowClass {
        thin: class.thin.or_else(|| own?.thin),
        thin_messages: class.thin_messages.or_else(|| own?.thin_messages),
        ..class
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
    use fulmar_proto::transport::aerotp::ThinRepair;
    use fulmar_proto::units::Duration;

    #[test]
    fn a_hop_may_miss_its_part_of_the_goal_of_this_gateway_s_class_and_all_of_one_that_was_told() {
        let thin = |missed_millionths| {
            let goal = DeliveryGoal {
                deadline: Duration::from_millis(300),
                missed_millionths,
                deliver: Deliver::ByDeadline,
                order: DeliveryOrder::Any,
            };
            ThinRepair::at_most(40).with_goal(goal).expect("in range")
        };
        let own = FlowClass {
            thin_messages: Some(thin(900)),
            ..FlowClass::default()
        };
        let opened = with_own_goal(FlowClass::default(), Some(own), 3);
        assert_eq!(opened.thin_messages, Some(thin(300)));
        let told = FlowClass {
            thin_messages: Some(thin(500)),
            ..FlowClass::default()
        };
        assert_eq!(with_own_goal(told, Some(own), 3), told);
        assert_eq!(with_own_goal(told, None, 3), told);
    }
}
