//! The connections that are served at once, and the order in which they give way to new ones.
//!
//! # Promises
//! - At most [`CONNECTIONS_MAX`] connections are served at once, and at most [`OF_ONE_CLIENT_MAX`] of one client.
//! - A new connection is served, unless all places are taken by clients whose answers are being made, which takes a
//!   moment. All others give way, those of the client with the most connections before the rest: first those that were
//!   told everything, then those that take their answers slowly, then those that have not asked; the oldest first.

use crate::gateway::flows::Client;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const CONNECTIONS_MAX: usize = 32;
/// The most connections of one client; the other places are for other clients.
pub(super) const OF_ONE_CLIENT_MAX: usize = 24;

/// The stage of a connection, in the order in which connections give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It was told everything, and has not closed.
    Told,
    /// It is being told.
    Telling,
    /// It has not asked yet.
    Asking,
    /// Its answer is being made, which nothing that it does can delay.
    Answering,
}

struct Served {
    client: Client,
    stage: Stage,
    stream: Arc<TcpStream>,
}

/// The connections that are served, by the order of their arrival.
#[derive(Default)]
struct Table {
    next: u64,
    served: BTreeMap<u64, Served>,
}

impl Table {
    /// The connection that gives way to one of `client`, if one has to and may.
    fn victim(&self, client: Client) -> Option<u64> {
        let mut of_client: BTreeMap<Client, usize> = BTreeMap::new();
        for served in self.served.values() {
            *of_client.entry(served.client).or_default() += 1;
        }
        let is_greedy = of_client
            .get(&client)
            .is_some_and(|n| *n >= OF_ONE_CLIENT_MAX);
        *of_client.entry(client).or_default() += 1;
        let may = |served: &Served| {
            served.stage != Stage::Answering && (!is_greedy || served.client == client)
        };
        let candidates = self.served.iter().filter(|(_, served)| may(served));
        let first = candidates.max_by_key(|(number, served)| {
            let count = of_client.get(&served.client).copied();
            (count, Reverse(served.stage), Reverse(**number))
        });
        first.map(|(number, _)| *number)
    }

    fn is_full_for(&self, client: Client) -> bool {
        let of_client = self
            .served
            .values()
            .filter(|served| served.client == client);
        self.served.len() >= CONNECTIONS_MAX || of_client.count() >= OF_ONE_CLIENT_MAX
    }
}

/// The places of a server.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<Table>>);

impl Places {
    fn table(&self) -> MutexGuard<'_, Table> {
        // What a panic elsewhere left is still a table.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `ip`, for which another may be broken off; `None` if nobody can give way.
    pub(super) fn take(&self, stream: &Arc<TcpStream>, ip: IpAddr) -> Option<Place> {
        let client = Client::from(ip);
        let mut table = self.table();
        if table.is_full_for(client) {
            let victim = table.victim(client)?;
            if let Some(victim) = table.served.remove(&victim) {
                // This tells its thread, too. The connection may have ended by itself.
                drop(victim.stream.shutdown(Shutdown::Both));
            }
        }
        let number = table.next;
        table.next += 1;
        let served = Served {
            client,
            stage: Stage::Asking,
            stream: Arc::clone(stream),
        };
        table.served.insert(number, served);
        drop(table);
        Some(Place {
            places: self.clone(),
            number,
        })
    }
}

/// One of the connections that are served at once, for as long as it is held.
pub(super) struct Place {
    places: Places,
    number: u64,
}

impl Place {
    /// Notes the connection's stage.
    pub(super) fn enter(&self, stage: Stage) {
        if let Some(served) = self.places.table().served.get_mut(&self.number) {
            served.stage = stage;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().served.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    struct Server {
        listener: TcpListener,
        places: Places,
    }

    /// A connection's place, and its client's end.
    type Connection = (Option<Place>, TcpStream);

    impl Server {
        fn new() -> Self {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let places = Places::default();
            Self { listener, places }
        }

        /// A connection that is taken for one of `ip`.
        fn connect(&self, ip: u8, stage: Stage) -> Connection {
            let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let (stream, _) = self.listener.accept().unwrap();
            let place = self.places.take(&Arc::new(stream), [10, 0, 0, ip].into());
            if let Some(place) = &place {
                place.enter(stage);
            }
            (place, client)
        }

        fn several(&self, count: usize, ip: u8, stage: Stage) -> Vec<Connection> {
            (0..count).map(|_| self.connect(ip, stage)).collect()
        }

        fn is_served(&self, connection: &Connection) -> bool {
            let place = connection.0.as_ref().unwrap();
            self.places.table().served.contains_key(&place.number)
        }
    }

    #[test]
    fn the_oldest_of_the_greediest_gives_way_and_sees_its_end() {
        let server = Server::new();
        let modest = server.several(8, 2, Stage::Told);
        let mut greedy = server.several(OF_ONE_CLIENT_MAX, 1, Stage::Asking);
        let stranger = server.connect(3, Stage::Asking);
        assert!(server.is_served(&stranger));
        assert!(modest.iter().all(|one| server.is_served(one)));
        let served: Vec<bool> = greedy.iter().map(|one| server.is_served(one)).collect();
        assert_eq!(served.iter().position(|served| !served), Some(0));
        assert_eq!(served.iter().filter(|served| **served).count(), 23);
        assert_eq!(greedy[0].1.read(&mut [0; 1]).unwrap_or(0), 0);
    }

    #[test]
    fn who_was_told_gives_way_before_who_reads_and_who_reads_before_who_asks() {
        let server = Server::new();
        let asking = server.several(8, 1, Stage::Asking);
        let telling = server.several(8, 1, Stage::Telling);
        let told = server.several(8, 1, Stage::Told);
        let _more = server.several(16, 1, Stage::Answering);
        for (stage, left) in [(&told, 0), (&telling, 0), (&asking, 8)] {
            let served = stage.iter().filter(|one| server.is_served(one));
            assert_eq!(served.count(), left);
        }
    }

    #[test]
    fn one_client_never_has_all_places_and_answers_under_way_are_not_broken_off() {
        let server = Server::new();
        let many = server.several(100, 1, Stage::Answering);
        let served = many.iter().filter(|(place, _)| place.is_some());
        assert_eq!(served.count(), OF_ONE_CLIENT_MAX);
        let others = server.several(100, 2, Stage::Answering);
        let served = others.iter().filter(|(place, _)| place.is_some());
        assert_eq!(served.count(), CONNECTIONS_MAX - OF_ONE_CLIENT_MAX);
        drop(many);
        assert!(server.connect(3, Stage::Asking).0.is_some());
    }

    #[test]
    fn whatever_comes_the_bounds_hold_and_a_place_comes_back() {
        let mut rng = fulmar_proto::rng::Rng::from_seed(9);
        let server = Server::new();
        let mut all = Vec::new();
        for _ in 0..1_000 {
            let stages = [Stage::Told, Stage::Telling, Stage::Asking];
            let stage = stages[usize::try_from(rng.below(3)).unwrap()];
            let client = u8::try_from(rng.below(3)).unwrap();
            let came = server.connect(client, stage);
            assert!(server.is_served(&came), "nobody's answer is under way");
            all.push(came);
            if rng.chance(0.3) {
                let index = usize::try_from(rng.below(all.len() as u64)).unwrap();
                all.swap_remove(index);
            }
            assert!(server.places.table().served.len() <= CONNECTIONS_MAX);
        }
        all.clear();
        assert!(server.places.table().served.is_empty());
    }
}
