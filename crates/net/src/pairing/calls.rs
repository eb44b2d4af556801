//! The calls that a listener has heard of, in constant memory.

use super::exchange::{PairingKeys, SHARE_BYTES};
use super::wire::{CallId, Refusal};
use core::time::Duration;
use fulmar_proto::units::Instant;
use std::net::IpAddr;

/// The most calls that are remembered.
pub(super) const CALLS_MAX: usize = 32;
/// Calls that may begin within [`PERIOD`], of all hosts and of one; each costs four multiplications on the curve.
const BEGUN_MAX: usize = 20;
const BEGUN_OF_HOST_MAX: usize = 4;
const PERIOD: Duration = Duration::from_secs(1);

/// The part of an address that its host cannot choose.
pub(super) fn host(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((ip.to_bits() >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The state of a call.
pub(super) enum CallState {
    /// It may prove that it knows the code, once.
    Begun(Box<PairingKeys>),
    /// It did, and was answered by this datagram.
    Accepted(Vec<u8>),
    Refused(Refusal),
}

/// A call.
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) host: IpAddr,
    pub(super) begun: Instant,
    pub(super) caller_share: [u8; SHARE_BYTES],
    /// Our answer, for a caller that asks again.
    pub(super) opened: Vec<u8>,
    pub(super) state: CallState,
}

/// All calls, oldest first.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

impl Calls {
    pub(super) fn get(&mut self, id: CallId) -> Option<&mut Call> {
        self.0.iter_mut().find(|call| call.id == id)
    }

    /// Whether a call of `host` may begin.
    pub(super) fn may_begin(&self, host: IpAddr, now: Instant) -> bool {
        let recent = || {
            let is_recent = |call: &&Call| now.saturating_since(call.begun) < PERIOD;
            self.0.iter().filter(is_recent)
        };
        recent().count() < BEGUN_MAX
            && recent().filter(|call| call.host == host).count() < BEGUN_OF_HOST_MAX
    }

    /// Remembers a call. If there are too many, the oldest of the host that has most is forgotten.
    pub(super) fn add(&mut self, call: Call) {
        if self.0.len() >= CALLS_MAX {
            let of = |host: IpAddr| self.0.iter().filter(|call| call.host == host).count();
            let most = self.0.iter().map(|call| of(call.host)).max();
            let oldest = (self.0.iter()).position(|call| Some(of(call.host)) == most);
            self.0.remove(oldest.unwrap_or(0));
        }
        self.0.push(call);
    }

    /// Refuses all calls that have not been refused yet: their code is spent.
    pub(super) fn spend(&mut self) {
        for call in &mut self.0 {
            if !matches!(call.state, CallState::Refused(_)) {
                call.state = CallState::Refused(Refusal::Spent);
            }
        }
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn call(id: u8, host: [u8; 4], millis: u64) -> Call {
        Call {
            id: CallId([id; 16]),
            host: IpAddr::from(host),
            begun: Instant::START + Duration::from_millis(millis),
            caller_share: [0; SHARE_BYTES],
            opened: Vec::new(),
            state: CallState::Refused(Refusal::Spent),
        }
    }

    #[test]
    fn a_host_that_calls_often_forgets_its_own_calls_first() {
        let mut calls = Calls::default();
        calls.add(call(0, [10, 0, 0, 1], 0));
        for id in 1..=200 {
            calls.add(call(id, [10, 0, 0, 2], id.into()));
        }
        assert_eq!(calls.len(), CALLS_MAX);
        assert!(calls.get(CallId([0; 16])).is_some(), "the other host's");
        assert!(calls.get(CallId([1; 16])).is_none());
        assert!(calls.get(CallId([200; 16])).is_some());
    }

    #[test]
    fn calls_of_a_second_are_bounded_for_a_host_and_for_all() {
        let mut calls = Calls::default();
        let now = Instant::START + Duration::from_millis(500);
        let hosts = || (1..=5).map(|n| IpAddr::from([10, 0, 0, n]));
        for host in hosts() {
            for id in 0..4 {
                assert!(calls.may_begin(host, now), "{host}, call {id}");
                let mut one = call(id, [0; 4], 0);
                one.host = host;
                calls.add(one);
            }
            assert!(!calls.may_begin(host, now), "{host} has had its calls");
        }
        let another = IpAddr::from([10, 0, 0, 99]);
        assert!(!calls.may_begin(another, now), "twenty of all");
        let later = Instant::START + PERIOD;
        assert!(
            calls.may_begin(another, later) && hosts().all(|host| calls.may_begin(host, later))
        );
    }

    #[test]
    fn the_host_of_an_address_is_its_own_or_its_network_of_ipv6() {
        let of = |text: &str| host(text.parse().unwrap()).to_string();
        assert_eq!(of("10.0.0.1"), "10.0.0.1");
        assert_eq!(of("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(of("fd00:1:2:3:4:5:6:7"), "fd00:1:2:3::");
    }
}
