use super::*;
use fulmar_proto::rng::Rng;

const HEAD: &str = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n";

/// A gateway with `peers` peers, an entry to each, destinations for all, and so many places.
fn config(peers: usize, flows: usize, more: &str) -> GatewayConfig {
    let peer = |n| format!("[[peer]]\nname = \"p{n}\"\nrate = \"1mbit\"\n");
    let entry = |n| {
        format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"10.0.0.1:80\"\npeer = \"p{n}\"\n")
    };
    let text = format!(
        "{HEAD}{}{}[egress]\nallow = [\"10.0.0.1:80\"]\n[limits]\nflows = {flows}\n{more}",
        (0..peers).map(peer).collect::<String>(),
        (0..peers).map(entry).collect::<String>(),
    );
    GatewayConfig::read("a.toml", &text).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "as it is asked for")]
fn client(n: u64) -> Option<Client> {
    let ip = std::net::Ipv4Addr::from(u32::try_from(n).unwrap());
    Some(Client::from(IpAddr::V4(ip)))
}

const IN: Role = Role::Opener;
const OUT: Role = Role::Acceptor;

fn take_all(admission: &Admission, party: Party, client: Option<Client>) -> Vec<Permit> {
    core::iter::from_fn(|| admission.admit(party, client).ok()).collect()
}

#[test]
fn clients_of_one_peer_that_take_everything_leave_the_others_their_reserve() {
    let admission = Admission::new(&config(2, 4_096, ""));
    let greedy: Vec<Permit> = (0..4_096)
        .flat_map(|n| take_all(&admission, Party::new(0, IN), client(n)))
        .collect();
    assert_eq!(greedy.len(), 4_096 - 3 * 512);
    for (peer, role) in [(0, OUT), (1, IN), (1, OUT)] {
        assert_eq!(
            take_all(&admission, Party::new(peer, role), None).len(),
            512
        );
    }
}

#[test]
fn a_greedy_client_has_half_and_forty_greedy_clients_leave_something() {
    let admission = Admission::new(&config(1, 4_096, ""));
    let party = Party::new(0, IN);
    let first = take_all(&admission, party, client(1));
    assert_eq!(first.len(), 3_072 / 2);
    assert_eq!(
        admission.admit(party, client(1)).unwrap_err(),
        Refusal::Client
    );
    let mut others = Vec::new();
    for n in 2..=40 {
        let taken = take_all(&admission, party, client(n));
        assert!(taken.len() > 1, "client {n}");
        others.push(taken);
    }
    assert!(admission.admit(party, client(41)).is_ok());
    drop((first, others));
    assert_eq!(admission.used(), 0);
}

#[test]
fn a_limit_of_the_operators_holds_for_each_client_and_each_peer() {
    let admission = Admission::new(&config(2, 4_096, "flows_per_client = 3\n"));
    for (peer, n) in [(0, 1), (0, 2), (1, 1)] {
        let taken = take_all(&admission, Party::new(peer, IN), client(n));
        assert_eq!(taken.len(), 3);
        core::mem::forget(taken);
    }
}

#[test]
fn an_ipv6_host_is_one_client_whatever_it_calls_itself() {
    let client = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:1"));
    assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
    assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
    assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
}

#[test]
fn newcomers_come_out_oldest_first_once_and_not_after_they_left() {
    let admission = Admission::new(&config(1, 100, ""));
    let party = Party::new(0, IN);
    let token = |n| Newcomer::Applicant(Token(n));
    let permits: Vec<Permit> = (0..6)
        .map(|n| {
            let permit = admission.admit(party, client(n % 2)).unwrap();
            permit.belongs_to(token(n));
            permit
        })
        .collect();
    assert_eq!(admission.take_oldest(party, client(1)), Some(token(1)));
    assert_eq!(admission.take_oldest(party, None), Some(token(0)));
    let mut permits = permits.into_iter();
    for _ in 0..3 {
        drop(permits.next());
    }
    assert_eq!(admission.take_oldest(party, None), Some(token(3)));
    assert_eq!(admission.take_oldest(Party::new(0, OUT), None), None);
    drop(permits);
    assert_eq!(admission.take_oldest(party, None), None);
    assert!(admission.0.borrow().newcomers_of.is_empty());
}

/// Checks the rules that hold after any sequence of comings and goings.
fn check(admission: &Admission, flows: usize, peers: usize) {
    assert!(admission.used() <= flows);
    let reserve = flows / 2 / (2 * peers);
    let table = admission.0.borrow();
    for peer in 0..peers {
        for role in [IN, OUT] {
            let party = Party::new(peer, role);
            let missing = reserve.saturating_sub(table.places.held(party));
            assert!(table.places.room(party) >= missing);
        }
    }
    drop(table);
}

#[test]
fn whatever_comes_and_goes_every_party_and_every_new_client_finds_a_place() {
    let mut rng = Rng::from_seed(24);
    for round in 0..40 {
        let peers = 1 + usize::try_from(rng.below(4)).unwrap();
        let flows = 16 * peers + usize::try_from(rng.below(200)).unwrap();
        let admission = Admission::new(&config(peers, flows, ""));
        let mut permits: Vec<Permit> = Vec::new();
        // The greediest client makes half of the requests.
        for _ in 0..2_000 {
            let peer = usize::try_from(rng.below(peers as u64)).unwrap();
            let role = if rng.chance(0.7) { IN } else { OUT };
            let who = if rng.chance(0.5) { 0 } else { rng.below(8) };
            let client = client(who).filter(|_| role == IN);
            if rng.chance(0.7) {
                if let Ok(permit) = admission.admit(Party::new(peer, role), client) {
                    permits.push(permit);
                }
            } else if !permits.is_empty() {
                let index = usize::try_from(rng.below(permits.len() as u64)).unwrap();
                permits.swap_remove(index);
            }
            assert_eq!(admission.used(), permits.len());
            check(&admission, flows, peers);
        }
        for peer in 0..peers {
            let party = Party::new(peer, IN);
            let is_full = admission.0.borrow().places.room(party) == 0;
            let stranger = admission.admit(party, client(99));
            assert_eq!(stranger.is_err(), is_full, "round {round}");
        }
        permits.clear();
        assert_eq!(admission.used(), 0);
        assert!(admission.0.borrow().clients.is_empty());
    }
}
