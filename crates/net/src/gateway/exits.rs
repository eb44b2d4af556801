//! Exits: what a peer's clients ask for, and whether they may.

use super::config::Egress;
use super::connect::{Connecting, Progress};
use super::flow::{Body, Messages, NewFlow};
use super::flow_record::FlowRecord;
use super::packets;
use super::resolver::Answer;
use super::running::{Link, Running, Target};
use super::stream::Stream;
use crate::session::PeerIndex;
use fulmar_proto::machine::PathId;
use fulmar_proto::splice::{Destination, FlowClass, FlowId, FlowKind, Host, RefuseCode, Role};
use fulmar_proto::transport::parts::LinkReport;
use fulmar_proto::units::Instant;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// What a peer's client wants.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) kind: FlowKind,
    pub(super) destination: Destination,
    pub(super) class: FlowClass,
}

/// The addresses of a resolved destination that may be connected to.
fn permitted(
    egress: &Egress,
    destination: &Destination,
    found: Vec<SocketAddr>,
) -> Vec<SocketAddr> {
    let by_name = match &destination.host {
        Host::Name(name) => egress
            .allow
            .iter()
            .any(|allow| allow.name(name.as_str(), destination.port)),
        Host::Address(_) => false,
    };
    let is_loopback =
        matches!(&destination.host, Host::Name(name) if names_loopback(name.as_str()));
    let allowed = |address: &SocketAddr| {
        let by_name = by_name && (is_loopback || is_elsewhere(address.ip()));
        by_name || egress.allow.iter().any(|allow| allow.address(*address))
    };
    found.into_iter().filter(allowed).collect()
}

/// Names that always stand for the loopback (RFC 6761, section 6.3): who permits one means it.
fn names_loopback(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether `ip` may be another host's. Whoever runs a permitted name's zone could otherwise let it
/// stand for what only this host, or its link, is meant to reach (DNS rebinding).
fn is_elsewhere(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => {
            // RFC 1122, section 3.2.1.3: this network, this host.
            let this_network = v4.octets()[0] == 0;
            let here = v4.is_loopback() || v4.is_link_local() || this_network;
            !(here || v4.is_multicast() || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            let here = v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified();
            !(here || v6.is_multicast())
        }
    }
}

impl Running {
    /// A peer asks for a flow.
    pub(super) fn requested(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        peer: PathId,
        asked: Asked,
    ) {
        let Asked {
            kind,
            destination,
            class,
        } = asked;
        let peer = usize::try_from(peer.0).unwrap_or(usize::MAX);
        self.report_link(now, link, peer);
        if self.is_full() {
            return self.refuse(now, link, id, &destination, RefuseCode::TooMany);
        }
        let new = NewFlow {
            kind,
            peer,
            class,
            destination: destination.clone(),
            proxied: false,
            entered: false,
            body: Body::Resolving,
            token: None,
        };
        self.flows.insert(now, id, new);
        self.trace_opened(now, link, id);
        match &destination.host {
            Host::Address(ip) => {
                let addresses = vec![SocketAddr::new(*ip, destination.port)];
                let answer = Answer {
                    flow: id,
                    addresses,
                };
                self.resolved(now, link, answer);
            }
            Host::Name(name) => {
                if self.config.egress.allow.is_empty() {
                    self.give_up(now, link, id, RefuseCode::NotAllowed);
                } else if !self.resolver.ask(id, name.as_str(), destination.port) {
                    self.give_up(now, link, id, RefuseCode::TooMany);
                }
            }
        }
    }

    /// What is known of the peer's link: the rate configured, and the round trip that the session
    /// measured, so that flows that begin need not find it out.
    pub(super) fn report_link(&self, now: Instant, link: &mut Link, peer: usize) {
        if let Some(settings) = self.config.peers.get(peer) {
            let path = PathId(u32::try_from(peer).unwrap_or(u32::MAX));
            let report = LinkReport {
                available: Some(settings.rate),
                queue: None,
                congested: false,
            };
            let index = PeerIndex(path.0);
            let round_trip = link.status(index).and_then(|status| status.rtt);
            let endpoint = link.inner_mut().endpoint_mut();
            endpoint.link_report(now, path, report);
            if let Some(round_trip) = round_trip {
                endpoint.expect_round_trip(path, round_trip);
            }
        }
    }

    fn refuse(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        destination: &Destination,
        code: RefuseCode,
    ) {
        self.trace_refused(now, destination, code.name());
        if let Some(skipped) = self.repeats.may(now, "exit_refused") {
            tracing::info!(event = "exit_refused", %destination, reason = code.name(), skipped);
        }
        link.inner_mut().refused(now, id, code);
    }

    /// An exit that came to nothing.
    fn give_up(&mut self, now: Instant, link: &mut Link, id: FlowId, code: RefuseCode) {
        if let Some(flow) = self.flows.remove(id) {
            if let Some(token) = flow.token {
                self.targets.remove(&token);
            }
            self.trace_ended(now, &flow, code.name());
            self.refuse(now, link, id, &flow.destination, code);
        }
    }

    /// A destination's addresses are known.
    pub(super) fn resolved(&mut self, now: Instant, link: &mut Link, answer: Answer) {
        let id = answer.flow;
        // It may have been reset meanwhile.
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        if answer.addresses.is_empty() {
            return self.give_up(now, link, id, RefuseCode::NameUnknown);
        }
        let addresses = permitted(&self.config.egress, &flow.destination, answer.addresses);
        let Some(first) = addresses.first().copied() else {
            return self.give_up(now, link, id, RefuseCode::NotAllowed);
        };
        match flow.kind {
            FlowKind::Stream => {
                let token = self.token(Target::Flow(id));
                let timeout = self.config.egress.connect_timeout;
                if let Some(flow) = self.flows.get_mut(id) {
                    flow.token = Some(token);
                    flow.body = Body::Connecting(Connecting::new(now, token, &addresses, timeout));
                }
                self.flows.wake(id);
            }
            FlowKind::Datagrams => self.speak(now, link, id, first),
        }
    }

    fn speak(&mut self, now: Instant, link: &mut Link, id: FlowId, destination: SocketAddr) {
        let token = self.token(Target::Flow(id));
        let made = packets::speak_to(destination).and_then(|socket| {
            self.poller.watch_edges(&socket, token)?;
            let bound = socket.local_addr()?;
            Ok((socket, bound))
        });
        match made {
            Ok((socket, bound)) => {
                link.inner_mut().connected(now, id, bound);
                if let Some(flow) = self.flows.get_mut(id) {
                    flow.token = Some(token);
                    flow.body = Body::Messages(Messages::Own(socket));
                }
                self.flows.wake(id);
            }
            Err(error) => {
                self.targets.remove(&token);
                let code = match error.raw_os_error() {
                    Some(23 | 24) => RefuseCode::TooMany,
                    _ => RefuseCode::Unreachable,
                };
                self.give_up(now, link, id, code);
            }
        }
    }

    /// Looks after a connection being made; `true` if it stands.
    pub(super) fn connect_turn(&mut self, now: Instant, link: &mut Link, id: FlowId) -> bool {
        let Some(flow) = self.flows.get_mut(id) else {
            return false;
        };
        let Body::Connecting(connecting) = &mut flow.body else {
            return false;
        };
        match connecting.progress(now, &self.poller) {
            Progress::Wait => {
                let at = connecting.next_deadline();
                self.flows.set_timer(id, Some(at));
                false
            }
            Progress::Failed(code) => {
                self.give_up(now, link, id, code);
                false
            }
            Progress::Done(socket) => {
                let stands = self.establish(now, link, id, socket).is_ok();
                if !stands {
                    self.give_up(now, link, id, RefuseCode::Refused);
                }
                stands
            }
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        link: &mut Link,
        id: FlowId,
        socket: TcpStream,
    ) -> io::Result<()> {
        let bound = socket.local_addr()?;
        let Some(flow) = self.flows.get(id) else {
            return Ok(());
        };
        let class = flow.class;
        let record = FlowRecord {
            role: Role::Acceptor,
            peer: self.peer_name(flow.peer).to_owned(),
            destination: flow.destination.clone(),
            class,
            bound: Some(bound),
            received: 0,
            preface: Vec::new(),
        };
        // The way back keeps as the class says, if this side knows the class.
        let known = self.config.classes.iter().find(|c| c.flow.id == class.id);
        let store = known
            .filter(|_| class.resume)
            .and_then(|settings| self.custody(id, settings, || record))
            .or_else(|| class.resume.then(|| self.memory(class.window)));
        if let Some(flow) = self.flows.get_mut(id) {
            flow.body = Body::Stream(Stream::new(socket, store));
        }
        // Before the first octet goes out: a flow that is asked for again has written nothing.
        self.keep(id, Vec::new());
        self.flows.set_timer(id, None);
        link.inner_mut().connected(now, id, bound);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::Place;

    fn egress(allow: &str) -> Egress {
        Egress {
            allow: allow.split(' ').map(|rule| rule.parse().unwrap()).collect(),
            connect_timeout: core::time::Duration::from_secs(1),
        }
    }

    #[test]
    fn a_name_may_stand_for_permitted_addresses_or_be_permitted_itself() {
        let found = || {
            vec![
                "10.0.0.1:80".parse().unwrap(),
                "192.168.0.1:80".parse().unwrap(),
            ]
        };
        let name = "server.example:80".parse::<Place>().unwrap().0;
        let by_address = permitted(&egress("10.0.0.0/8:80"), &name, found());
        assert_eq!(by_address, [found()[0]]);
        assert_eq!(
            permitted(&egress("server.example:80"), &name, found()),
            found()
        );
        assert!(permitted(&egress("other.example:80"), &name, found()).is_empty());
    }

    #[test]
    fn a_permitted_name_does_not_stand_for_this_host_or_its_link() {
        let name = "server.example:80".parse::<Place>().unwrap().0;
        let rules = "server.example:80 *.example:80";
        for special in [
            "127.0.0.1:80",
            "127.8.0.1:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "[::]:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[ff02::1]:80",
        ] {
            let address: SocketAddr = special.parse().unwrap();
            let found = || vec![address, "192.0.2.1:80".parse().unwrap()];
            let left = permitted(&egress(rules), &name, found());
            assert_eq!(left, [found()[1]], "{special} by its name");
            let network = match address {
                SocketAddr::V4(_) => "0.0.0.0/0:80",
                SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => "127.0.0.0/8:80",
                SocketAddr::V6(_) => "[::]/0:80",
            };
            let by_address = egress(&format!("{rules} {}", network.replace("[::]/0", "[::/0]")));
            assert_eq!(permitted(&by_address, &name, found()), found(), "{special}");
        }
        let local = "localhost:80".parse::<Place>().unwrap().0;
        let found = || vec!["127.0.0.1:80".parse().unwrap()];
        assert_eq!(permitted(&egress("localhost:80"), &local, found()), found());
    }
}
