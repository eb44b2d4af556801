//! The right to send a file of a name, and the last words to every sender.

use super::super::incoming::Transfer;
use super::super::report::{ReceiveError, TransferVerdict};
use super::{ReceiveObserver, Receiver};
use fulmar_proto::machine::PathId;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionId};
use fulmar_proto::units::{Duration, Instant};

/// The round trips that a sender may take to confirm our end: some of the records, and some of the
/// confirmations, are lost.
const STOPPING_RTTS: u32 = 8;
/// The shortest and the longest time for them. A user who cannot wait sends the signal again.
const STOPPING_MIN: Duration = Duration::from_secs(1);
const STOPPING_MAX: Duration = Duration::from_secs(6);

impl<O: ReceiveObserver> Receiver<O> {
    /// Gives a sender the name it introduced, unless another sender has it. The same sender on a new
    /// connection has it already. Whether another sender lives, the receiver must find out first.
    pub(super) fn claim(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
    ) -> Result<(), ReceiveError> {
        let Some(mut claimant) = self.transfers.remove(&control) else {
            return Ok(());
        };
        let name = claimant.name().unwrap_or_default();
        let rival = self
            .transfers
            .values_mut()
            .find(|transfer| transfer.is_receiving(name));
        let mut outcome = Ok(());
        match rival {
            Some(rival) if rival.id() != claimant.id() => {
                rival.ping(now, machine);
                claimant.contend(now, rival.control(), machine.rtt(rival.control()));
            }
            Some(rival) => {
                let rival = rival.control();
                machine.abort(now, rival);
                self.supersede(now, machine, rival);
                outcome = claimant.admit(now, &self.plan, &self.verified);
            }
            None => outcome = claimant.admit(now, &self.plan, &self.verified),
        }
        self.transfers.insert(control, claimant);
        outcome
    }

    /// Lets a sender that waits for another one's sign of life go on, if it is decided.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
    ) -> Result<bool, ReceiveError> {
        let Some(claimant) = self.transfers.get(&control) else {
            return Ok(false);
        };
        let Some(contest) = claimant.contest() else {
            return Ok(false);
        };
        let name = claimant.name().unwrap_or_default();
        let rival = self.transfers.get(&contest.rival);
        if let Some(rival) = rival.filter(|rival| rival.is_receiving(name)) {
            match rival.is_alive(now, machine, &contest) {
                None => return Ok(false),
                Some(true) => return Err(ReceiveError::Busy(name.to_owned())),
                Some(false) => {
                    let told = ReceiveError::TakenOver(name.to_owned());
                    if let Some(rival) = self.transfers.get_mut(&contest.rival) {
                        rival.say_refused(now, machine, &told);
                    }
                    machine.close(now, contest.rival);
                    self.supersede(now, machine, contest.rival);
                }
            }
        }
        self.claim(now, machine, control)?;
        Ok(true)
    }

    /// Handles a sender's word, on the connection `word`, that it has ended its transfer; its reset may have been
    /// lost. The word is confirmed in any case.
    pub(super) fn on_leave(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        word: ConnectionId,
        id: u64,
    ) {
        let mut ended = Vec::new();
        for (&control, transfer) in &mut self.transfers {
            if control != word && transfer.id() == Some(id) && transfer.is_undecided() {
                transfer.abandon(TransferVerdict::Abandoned);
                ended.push(control);
            }
        }
        for control in ended {
            machine.abort(now, control);
            self.conclude(now, machine, control);
        }
        machine.close(now, word);
        self.transfers.remove(&word);
    }

    /// Forgets the peer at `path`, which has restarted. It will continue the undecided transfers, and hears no more of
    /// the others. Its connections end without a word of ours.
    pub(super) fn forget_peer(&mut self, now: Instant, machine: &mut AerotpEndpoint, path: PathId) {
        let of_peer = self.origins.iter().filter(|(_, (of, _))| *of == path);
        let of_peer: Vec<ConnectionId> = of_peer.map(|(id, _)| *id).collect();
        for control in of_peer {
            match self.transfers.get(&control).map(Transfer::is_undecided) {
                Some(true) => self.supersede(now, machine, control),
                Some(false) => self.conclude(now, machine, control),
                None => {}
            }
        }
    }

    /// Forgets a transfer that another one continues: its octets are made durable and unlocked, and
    /// nothing is reported.
    fn supersede(&mut self, now: Instant, machine: &mut AerotpEndpoint, control: ConnectionId) {
        self.drop_lanes(now, machine, control);
        if let Some(mut transfer) = self.transfers.remove(&control) {
            transfer.abandon(TransferVerdict::Abandoned);
            drop(transfer.conclude(now, machine));
        }
    }

    pub(super) fn drop_lanes(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        control: ConnectionId,
    ) {
        self.lanes.retain(|&lane, owner| {
            let is_its = *owner == Some(control);
            if is_its {
                machine.abort(now, lane);
            }
            !is_its
        });
    }

    /// Tells every sender that is not done, and returns the time that they may take to confirm it.
    pub(super) fn begin_stop(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> Duration {
        let mut patience = STOPPING_MIN;
        for transfer in self.transfers.values_mut() {
            let rtt = machine.rtt(transfer.control()).unwrap_or_default();
            patience = patience.max(rtt * STOPPING_RTTS);
            if transfer.name().is_some() {
                transfer.refuse(now, machine, ReceiveError::Stopped);
            } else {
                machine.abort(now, transfer.control());
                transfer.abandon(TransferVerdict::Abandoned);
            }
        }
        patience.min(STOPPING_MAX)
    }

    /// Reports on everything, and leaves.
    pub(super) fn conclude_all(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        let controls: Vec<ConnectionId> = self.transfers.keys().copied().collect();
        for control in controls {
            let is_confirmed = |transfer: &Transfer| transfer.is_confirmed();
            if !self.transfers.get(&control).is_some_and(is_confirmed) {
                machine.abort(now, control);
            }
            self.conclude(now, machine, control);
        }
    }
}
