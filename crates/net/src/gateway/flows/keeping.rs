//! The parts that outlive the gateway: octets in a store, sockets at a keeper.

mod line;

use super::custody::{Budget, Custody};
use super::disk::DiskCustody;
use super::flow::Wish;
use super::flow_record::FlowRecord;
use super::kept_ports::{self, KeptPorts};
use crate::custody::{FlowStore, Recovery, Store, StoreConfig, StoreNotice};
use crate::gateway::GatewayError;
use crate::gateway::config::{CustodyPlace, GatewayConfig};
use crate::keeper::{AcceptedClient, Keeper, KeeperConfig, KeeperError, SocketRecord, TakenSocket};
use crate::wait::{Interest, Waker, wait};
use fulmar_proto::splice::{FlowId, Role};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;

/// The hidden command of this program that is a keeper.
const KEEPER_COMMAND: &str = "gateway-keeper";
/// This program, also after another was installed over it.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Keepers that may die on one gateway before it goes on without.
const KEEPERS_MAX: u32 = 4;
/// The first number that names a client given to another keeper. Ports have small numbers, and those that the keeper
/// gives itself begin beyond.
const FIRST_GIVEN_AGAIN: u64 = 1 << 62;
/// The time between two looks at a keeper.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time between two looks whether a full disk has room again.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_secs(5);

/// The store and the keeper, if the configuration has custody on disk.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Keeping {
    store: Option<Rc<Store>>,
    keeper: Option<Keeper>,
    /// The keeper's place, and the time for which it stays without a gateway.
    place: Option<(PathBuf, KeeperConfig)>,
    /// The sockets that the keeper has, for a keeper that takes its place.
    kept: BTreeMap<FlowId, SocketRecord>,
    /// The listening ports that the keeper has.
    ports: KeptPorts,
    /// The client that is being seen to, until it is a flow's or an applicant's.
    client: Option<KeptClient>,
    /// Replies to proxies' clients that wait until the keeper knows of them.
    unsaid: Vec<(FlowId, Vec<u8>)>,
    died: u32,
    /// Whether the poller watches for the keeper's end.
    watched: bool,
    next_look: Instant,
    /// When a full disk is tried next.
    room_look: Option<Instant>,
    /// When something that waits for the keeper is tried again.
    again_at: Option<Instant>,
}

/// A client whose connection the keeper has, and that has no flow.
#[derive(Debug)]
pub(in crate::gateway) struct KeptClient {
    /// The keeper's name for it.
    name: FlowId,
    record: SocketRecord,
}

/// The flows and sockets that the gateway before left.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Found {
    pub(in crate::gateway) recovery: Recovery,
    pub(in crate::gateway) taken: Vec<TakenSocket>,
}

impl Keeping {
    pub(in crate::gateway) fn open(
        config: &GatewayConfig,
        waker: Waker,
    ) -> Result<(Self, Found), GatewayError> {
        let on_disk = config
            .classes
            .iter()
            .any(|class| class.custody == CustodyPlace::Disk);
        let Some(directory) = config.custody.directory.clone().filter(|_| on_disk) else {
            return Ok((Self::default(), Found::default()));
        };
        // Inside the store, whose lock says that no other gateway is there.
        let path = directory.join("keeper");
        let settings = StoreConfig {
            directory,
            limit: config.custody.limit,
            sync: config.custody.sync,
        };
        let claim = Store::claim(settings)?;
        let mut keeping = Self::default();
        let mut taken = Vec::new();
        if let Some(keep_for) = config.custody.keep_for {
            let settings = KeeperConfig { keep_for };
            match Keeper::start(&path, settings, keeper_command()) {
                Ok((started, sockets)) => {
                    keeping.keeper = Some(started);
                    taken = keeping.ports.take_over(sockets);
                }
                // A keeper of another version ends by itself. Until the next start, a kill resets connections.
                Err(error @ KeeperError::Version { .. }) => {
                    tracing::warn!(event = "keeper_of_another_version", %error);
                }
                Err(error) => return Err(error.into()),
            }
            keeping.place = Some((path, settings));
        }
        // After the keeper was taken over: it waits for a next gateway for a limited time only, and opening may take
        // long.
        let opened = claim.open(Some(waker)).inspect_err(|_| {
            // A keeper that holds something waits for the next start.
            let has_nothing = taken.is_empty() && keeping.ports.is_empty();
            keeping.stop(!has_nothing);
        });
        let (store, recovery) = opened?;
        keeping.store = Some(Rc::new(store));
        Ok((keeping, Found { recovery, taken }))
    }

    /// Octets of damaged custody that are set aside.
    pub(in crate::gateway) fn damaged_bytes(&self) -> u64 {
        let store = self.store.as_ref();
        store.map_or(0, |store| store.set_aside().1.0)
    }

    /// Whether the store has no room: its limit is reached, or its disk is full.
    pub(in crate::gateway) fn is_full(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_full())
    }

    /// Whether flows are kept on disk at all.
    pub(in crate::gateway) const fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// A store on disk for a flow, whose files count in `budget`; `kept` is what was found of it.
    pub(in crate::gateway) fn custody(
        &self,
        flow: (FlowId, FlowRecord),
        kept: Option<FlowStore>,
        limit: ByteCount,
        budget: Budget,
    ) -> Option<Box<dyn Custody>> {
        let store = Rc::clone(self.store.as_ref()?);
        let custody = DiskCustody::new(store, flow, kept, limit, budget);
        Some(Box::new(custody))
    }

    /// Looks after both: logs the store's notices, and sends what waits for the keeper.
    fn turn(&mut self, now: Instant) {
        self.look_for_room(now);
        while let Some(notice) = self.store.as_ref().and_then(|store| store.poll_notice()) {
            say(&notice);
        }
        self.say(|keeper| keeper.flush().map(drop));
        if now >= self.next_look {
            self.next_look = now + LOOK_EVERY;
            self.say(|keeper| {
                if keeper.is_gone() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Ok(())
            });
        }
    }

    /// Looks for room on a full disk now and then: otherwise nothing would say that there is some again until clients have
    /// sent much.
    fn look_for_room(&mut self, now: Instant) {
        let Some(store) = &self.store else {
            return;
        };
        if self.room_look.is_some_and(|at| at <= now) {
            if let Err(error) = store.look_for_room() {
                tracing::warn!(event = "custody_not_looked_at", %error);
            }
            self.room_look = None;
        }
        self.room_look = if store.is_disk_full() {
            self.room_look.or(Some(now + LOOK_FOR_ROOM_EVERY))
        } else {
            None
        };
    }

    /// Accepts a client at a port, through the keeper if it has the port, under the name `kept`: between our own `accept`
    /// and a word to the keeper, a kill would reset the client. Call [`Keeping::end_accept`] once the client has its flow
    /// or none.
    pub(in crate::gateway) fn accept(
        &mut self,
        listener: &TcpListener,
        kept: Option<&str>,
    ) -> io::Result<TcpStream> {
        let known =
            kept.and_then(|name| Some((self.ports.id(name)?, kept_ports::client_record(name))));
        if let (Some(keeper), Some((port, record))) = (&mut self.keeper, known) {
            // Without room for its descriptor here, a client is to stay in the queue.
            drop(listener.try_clone()?);
            let mut ready = Vec::new();
            let waits = (listener.as_fd(), Interest::Readable);
            wait(&[waits], Some(Duration::ZERO), &mut ready)?;
            if !ready[0].readable {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            match keeper.accept(port, &record) {
                Ok(Some(accepted)) => {
                    let name = accepted.client;
                    self.client = Some(KeptClient { name, record });
                    return Ok(accepted.socket);
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.say(|_| Err(error));
                }
                Err(error) => return Err(error),
            }
        }
        listener.accept().map(|(stream, _)| stream)
    }

    /// Takes out the clients that the gateway before had accepted and given no flow, each with its port's name.
    pub(in crate::gateway) fn take_clients(
        &mut self,
    ) -> impl Iterator<Item = (String, AcceptedClient)> + use<> {
        self.ports.take_clients()
    }

    /// Begins to see to a client that the gateway before accepted at `port`, and that has this name at the keeper.
    pub(in crate::gateway) fn accepted_before(&mut self, port: &str, name: FlowId) {
        let record = kept_ports::client_record(port);
        self.client = Some(KeptClient { name, record });
    }

    /// Takes out the client of [`Keeping::accept`], which is not seen to at once. It stays with the keeper until
    /// [`Keeping::accept_again`] or [`Keeping::forget_client`].
    pub(in crate::gateway) fn take_client(&mut self) -> Option<KeptClient> {
        self.client.take()
    }

    /// Sees to a client as to one that was just accepted.
    pub(in crate::gateway) fn accept_again(&mut self, client: Option<KeptClient>) {
        self.client = client;
    }

    /// Ends seeing to the client of [`Keeping::accept`]: if it has no flow, its connection is ours only.
    pub(in crate::gateway) fn end_accept(&mut self) {
        let client = self.client.take();
        self.forget_client(client);
    }

    /// Makes a client's connection ours only.
    pub(in crate::gateway) fn forget_client(&mut self, client: Option<KeptClient>) {
        if let Some(client) = client {
            self.say(|keeper| keeper.forget(client.name));
        }
    }

    /// Gives the keeper a flow's socket, or another record of one that it has.
    pub(super) fn keep(&mut self, id: FlowId, socket: &TcpStream, record: SocketRecord) {
        match self.client.take() {
            Some(client) => self.say(|keeper| keeper.claim(client.name, id, &record)),
            // A new record needs no descriptor at the keeper.
            None if self.kept.contains_key(&id) => self.say(|keeper| keeper.note(id, &record)),
            None => self.say(|keeper| keeper.keep(id, socket, &record)),
        }
        self.kept.insert(id, record);
    }

    /// Notes that the keeper has a flow's socket from the gateway before.
    pub(in crate::gateway) fn has(&mut self, id: FlowId, record: SocketRecord) {
        self.kept.insert(id, record);
    }

    /// Forgets a flow that is over: its connection must end with our socket.
    pub(in crate::gateway) fn forget(&mut self, id: FlowId) {
        self.kept.remove(&id);
        self.say(|keeper| keeper.forget(id));
    }

    /// The port of the gateway before that the keeper has under `name`.
    pub(in crate::gateway) fn take_port(&mut self, name: &str) -> Option<TcpListener> {
        self.ports.take(name)
    }

    /// A name that begins with `beginning` and that no other kept port has.
    pub(in crate::gateway) fn free_port_name(&self, beginning: &str) -> String {
        self.ports.free_name(beginning)
    }

    /// Gives the keeper a listening port: a client that connects while no gateway runs waits for the next.
    pub(in crate::gateway) fn keep_port(&mut self, name: &str, listener: &TcpListener) {
        if self.keeper.is_none() {
            return;
        }
        let kept = match self.ports.add(name, listener) {
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(event = "not_kept", port = name, %error);
                return;
            }
        };
        if let Some((id, record)) = kept {
            self.say(|keeper| keeper.keep(id, listener, &record));
        }
    }

    /// Takes a port from the keeper: no client is to wait there any more.
    pub(in crate::gateway) fn forget_port(&mut self, name: &str) {
        if let Some(id) = self.ports.remove(name) {
            self.say(|keeper| keeper.forget(id));
        }
    }

    /// Closes the ports of the gateway before that are not among `names`, so that entries at overlapping addresses
    /// can be opened.
    pub(in crate::gateway) fn forget_other_ports(&mut self, names: &[String]) {
        for id in self.ports.take_others(names) {
            self.say(|keeper| keeper.forget(id));
        }
    }

    pub(in crate::gateway) const fn has_keeper(&self) -> bool {
        self.keeper.is_some()
    }

    /// Ends the line: the keeper stays only if it has something to keep.
    pub(in crate::gateway) fn stop(&mut self, flows_are_left: bool) {
        if let Some(keeper) = self.keeper.take()
            && !flows_are_left
        {
            keeper.stop();
        }
    }

    fn say(&mut self, words: impl FnOnce(&mut Keeper) -> io::Result<()>) {
        if let Some(keeper) = &mut self.keeper
            && let Err(error) = words(keeper)
        {
            tracing::error!(event = "keeper_gone", %error);
            // Asking collects a dead child process.
            keeper.is_gone();
            self.keeper = None;
            self.watched = false;
            self.died += 1;
        }
    }

    /// Starts a keeper in the place of one that died, if there may be one; `true` if it has to be
    /// given everything.
    fn replace_keeper(&mut self) -> bool {
        let Some((path, settings)) = self.place.as_ref().filter(|_| self.keeper.is_none()) else {
            return false;
        };
        if self.died == 0 || self.died >= KEEPERS_MAX {
            return false;
        }
        match Keeper::replace(path, *settings, keeper_command()) {
            Ok(keeper) => {
                self.keeper = Some(keeper);
                true
            }
            Err(error) => {
                tracing::error!(event = "no_keeper", %error);
                self.died = KEEPERS_MAX;
                false
            }
        }
    }
}

/// Logs a notice. Each kind has an event of its own, by which the log's limits tell lines apart: a grave notice
/// must not be left out for the many of another kind.
fn say(notice: &StoreNotice) {
    match notice {
        StoreNotice::LimitReached { .. } => {
            tracing::warn!(event = "custody_limit_reached", %notice);
        }
        StoreNotice::DiskFull { .. } => tracing::warn!(event = "custody_disk_full", %notice),
        StoreNotice::RoomAgain { .. } => tracing::info!(event = "custody_room_again", %notice),
        StoreNotice::SetAside { .. } => tracing::warn!(event = "custody_set_aside", %notice),
        StoreNotice::NotSetAside { .. } => {
            tracing::error!(event = "custody_not_set_aside", %notice);
        }
        StoreNotice::GaveWay { .. } => tracing::error!(event = "custody_gave_way", %notice),
        StoreNotice::LineMended { .. } => tracing::warn!(event = "custody_line_mended", %notice),
        StoreNotice::SyncFailed { .. } => tracing::error!(event = "custody_sync_failed", %notice),
    }
}

fn keeper_command() -> Command {
    let mut command = Command::new(THIS_PROGRAM);
    command.arg0("fulmar").arg(KEEPER_COMMAND);
    command
}

/// The record of a flow that begins.
pub(in crate::gateway) fn record(config: &GatewayConfig, role: Role, wish: &Wish) -> FlowRecord {
    FlowRecord {
        role,
        peer: config.peer_name(wish.peer).to_owned(),
        destination: wish.to.clone(),
        class: wish.class,
        bound: None,
        received: 0,
        preface: Vec::new(),
        held: false,
        partner: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custody::faults;

    #[test]
    fn a_full_disk_is_tried_by_itself_until_it_has_room() {
        let (store, set_capacity) = faults::store_and_capacity(ByteCount(8 << 20), 0);
        let mut keeping = Keeping {
            store: Some(Rc::new(store)),
            ..Keeping::default()
        };
        let start = Instant::START;
        let turn = |keeping: &mut Keeping, now| {
            keeping.turn(now);
            // The look's thread calls the loop, which turns again.
            keeping.store.as_ref().unwrap().wait_for_look();
            keeping.turn(now);
        };
        turn(&mut keeping, start);
        assert_eq!(keeping.next_deadline(), None, "nothing is full");

        let begun = keeping
            .store
            .as_ref()
            .unwrap()
            .begin(FlowId([1; 16]), 0, b"");
        assert!(begun.unwrap().is_none());
        turn(&mut keeping, start);
        let first = start + LOOK_FOR_ROOM_EVERY;
        assert_eq!(keeping.next_deadline(), Some(first));
        turn(&mut keeping, first);
        assert!(keeping.is_full(), "the disk is as full as before");
        // Room for less than what ends the alarm is none to speak of, and is left free.
        set_capacity(100 << 10);
        let second = first + LOOK_FOR_ROOM_EVERY;
        assert_eq!(keeping.next_deadline(), Some(second));
        turn(&mut keeping, second);
        assert!(keeping.is_full());

        set_capacity(1 << 20);
        let third = second + LOOK_FOR_ROOM_EVERY;
        turn(&mut keeping, third - Duration::from_millis(1));
        assert!(keeping.is_full(), "not before its time");
        assert_eq!(keeping.next_deadline(), Some(third));
        turn(&mut keeping, third);
        assert!(!keeping.is_full());
        assert_eq!(keeping.next_deadline(), None);
        // What it was tried with is gone.
        set_capacity(2 << 10);
        let begun = keeping
            .store
            .as_ref()
            .unwrap()
            .begin(FlowId([1; 16]), 0, b"");
        assert!(begun.unwrap().is_some());
    }
}
