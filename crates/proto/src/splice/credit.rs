//! Permission to send: memory promised to peers, and the part of a promise that is left.
//!
//! A receiver promises an offset up to which it will take octets. Octets that are promised, and that
//! its host has not acknowledged, are reserved in a pool that all flows share. Every flow may have a
//! floor; beyond it a flow gets at most half of what is left. So credit shrinks as flows grow in
//! number, and the pool is never empty (Choudhury and Hahne, "Dynamic queue length thresholds for
//! shared-memory packet switches", `IEEE/ACM ToN` 1998, with alpha = 1). A part of the pool is kept
//! for new flows, whose first octets come without being asked for.

/// Octets that every flow may be promised, whatever others hold.
pub(super) const FLOOR_BYTES: u64 = 16 << 10;
/// The divisor of the shared memory that gives the part kept for new flows.
const HEADROOM_SHARE: u64 = 4;

/// The memory that all flows of a splicer share for octets that they receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditPool {
    free: u64,
    headroom: u64,
    reserved: u64,
}

/// The part of the pool that one flow holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reservation(u64);

impl Reservation {
    pub(super) const fn bytes(self) -> u64 {
        self.0
    }

    const fn beyond_floor(self) -> u64 {
        self.0.saturating_sub(FLOOR_BYTES)
    }
}

impl CreditPool {
    /// A pool of `total` octets for up to `flows_max` flows; `None` if their floors alone exceed
    /// it.
    pub(super) fn new(total: u64, flows_max: usize) -> Option<Self> {
        let floors = FLOOR_BYTES.checked_mul(u64::try_from(flows_max).ok()?)?;
        let free = total.checked_sub(floors)?;
        Some(Self {
            free,
            headroom: free / HEADROOM_SHARE,
            reserved: 0,
        })
    }

    /// Octets reserved, by all flows.
    pub(super) const fn reserved(&self) -> u64 {
        self.reserved
    }

    fn set(&mut self, held: &mut Reservation, bytes: u64) {
        let to = Reservation(bytes);
        self.free = (self.free + held.beyond_floor()).saturating_sub(to.beyond_floor());
        self.reserved = (self.reserved + to.0).saturating_sub(held.0);
        *held = to;
    }

    /// Raises `held` towards `wanted`, as far as a running flow may go.
    pub(super) fn grow(&mut self, held: &mut Reservation, wanted: u64) {
        let base = held.0.max(FLOOR_BYTES);
        let share = self.free.saturating_sub(self.headroom) / 2;
        let bytes = wanted.min(base + share);
        if bytes > held.0 {
            self.set(held, bytes);
        }
    }

    /// Raises `held` by exactly `bytes`. Returns `false` if the pool has not so much.
    pub(super) fn take(&mut self, held: &mut Reservation, bytes: u64) -> bool {
        let to = Reservation(held.0.saturating_add(bytes));
        if to.beyond_floor() - held.beyond_floor() > self.free {
            return false;
        }
        self.set(held, to.0);
        true
    }

    /// Gives `bytes` of `held` back.
    pub(super) fn give_back(&mut self, held: &mut Reservation, bytes: u64) {
        self.set(held, held.0.saturating_sub(bytes));
    }

    /// Gives all of `held` back.
    pub(super) fn release(&mut self, held: &mut Reservation) {
        self.set(held, 0);
    }
}

/// The receiving half of a stream's accounts. Offsets count octets from the flow's start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreditGiven {
    held: Reservation,
    /// The offset up to which the far side may send.
    limit: u64,
    /// The octets that the local host has acknowledged.
    delivered: u64,
    /// The octets of these that the far side was told of.
    told: u64,
    /// The distance of the last promise beyond the octets delivered at that time.
    last_grant: u64,
}

impl CreditGiven {
    /// Accounts that begin at `start`, after a restart.
    pub(super) const fn starting_at(start: u64) -> Self {
        Self {
            held: Reservation(0),
            limit: start,
            delivered: start,
            told: start,
            last_grant: 0,
        }
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the far side knows how much was delivered.
    pub(super) const fn is_told(&self) -> bool {
        self.told == self.delivered
    }

    /// The octets delivered of which the far side was not told.
    pub(super) const fn untold(&self) -> u64 {
        self.delivered - self.told
    }

    /// Notes that the far side sends `bytes` without a promise. Returns `false` if the pool has not
    /// so much.
    pub(super) fn presume(&mut self, pool: &mut CreditPool, bytes: u64) -> bool {
        if !pool.take(&mut self.held, bytes) {
            return false;
        }
        self.limit += bytes;
        self.last_grant = self.last_grant.max(bytes);
        true
    }

    /// Notes that the local host has acknowledged `total` octets.
    pub(super) fn on_delivered(&mut self, pool: &mut CreditPool, total: u64) {
        let news = total.saturating_sub(self.delivered);
        self.delivered += news;
        pool.give_back(&mut self.held, news);
    }

    /// Whether the far side should hear at once how much was delivered. That is due from a quarter
    /// of its last grant on, so that it hears before it has to stop.
    pub(super) const fn is_report_due(&self) -> bool {
        let news = self.delivered - self.told;
        news > 0 && news >= self.last_grant / 4
    }

    /// Promises up to `window` octets beyond those delivered, and returns the limit to tell.
    pub(super) fn offer(&mut self, pool: &mut CreditPool, window: u64) -> u64 {
        pool.grow(&mut self.held, window);
        self.limit = self.limit.max(self.delivered + self.held.bytes());
        self.last_grant = self.limit - self.delivered;
        self.limit
    }

    /// Promises likewise, and notes that the far side is told how much was delivered. Returns both.
    pub(super) fn grant(&mut self, pool: &mut CreditPool, window: u64) -> (u64, u64) {
        let limit = self.offer(pool, window);
        self.told = self.delivered;
        (self.delivered, limit)
    }

    /// Returns everything that the flow holds, when it is over.
    pub(super) fn release(&mut self, pool: &mut CreditPool) {
        pool.release(&mut self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_pool_that_cannot_hold_every_flows_floor_is_none() {
        assert!(CreditPool::new(100 * FLOOR_BYTES, 100).is_some());
        assert!(CreditPool::new(100 * FLOOR_BYTES - 1, 100).is_none());
    }

    #[test]
    fn what_is_reserved_never_exceeds_the_total_and_every_flow_has_its_floor() {
        let flows = 200;
        let total = 8 * MIB;
        let mut rng = Rng::from_seed(5);
        let mut pool = CreditPool::new(total, flows).expect("floors fit");
        let mut accounts = vec![CreditGiven::default(); flows];
        for round in 0..50_000_u64 {
            let index = usize::try_from(rng.below(flows as u64)).expect("small");
            let account = &mut accounts[index];
            match rng.below(4) {
                0 => {
                    let before = account.limit();
                    let (delivered, limit) = account.grant(&mut pool, MIB);
                    assert!(limit >= before, "credit given is not taken back");
                    assert!(limit >= delivered + FLOOR_BYTES, "round {round}");
                    assert!(limit <= before.max(delivered + MIB));
                }
                1 | 2 => {
                    let more = rng.below(account.limit() - account.delivered() + 1);
                    let total = account.delivered() + more;
                    account.on_delivered(&mut pool, total);
                }
                _ if rng.chance(0.1) => {
                    account.release(&mut pool);
                    *account = CreditGiven::default();
                }
                _ => {}
            }
            let promised: u64 = accounts.iter().map(|a| a.limit() - a.delivered()).sum();
            assert_eq!(promised, pool.reserved());
            assert!(promised <= total, "{promised} in round {round}");
        }
        for account in &mut accounts {
            account.release(&mut pool);
        }
        assert_eq!(pool.reserved(), 0);
        assert_eq!(pool.free, total - flows as u64 * FLOOR_BYTES);
    }

    #[test]
    fn credit_shrinks_as_flows_grow_in_number() {
        let mut pool = CreditPool::new(64 * MIB, 1_000).expect("floors fit");
        let grants: Vec<u64> = (0..1_000)
            .map(|_| {
                let mut account = CreditGiven::default();
                account.grant(&mut pool, 4 * MIB).1
            })
            .collect();
        assert_eq!(grants[0], 4 * MIB);
        assert!(grants.is_sorted_by(|a, b| a >= b));
        assert!(grants[999] < 2 * FLOOR_BYTES);
    }

    #[test]
    fn new_flows_find_memory_though_running_ones_want_all() {
        let mut pool = CreditPool::new(64 * MIB, 100).expect("floors fit");
        for _ in 0..90 {
            CreditGiven::default().grant(&mut pool, u64::MAX / 2);
        }
        let mut newcomer = CreditGiven::default();
        assert!(newcomer.presume(&mut pool, MIB));
        assert!(!newcomer.presume(&mut pool, 64 * MIB));
        assert_eq!(newcomer.limit(), MIB, "a refusal changes nothing");
    }

    #[test]
    fn a_report_is_due_at_a_quarter_of_the_last_grant() {
        let mut pool = CreditPool::new(64 * MIB, 10).expect("floors fit");
        let mut account = CreditGiven::default();
        assert_eq!(account.grant(&mut pool, 400), (0, 400));
        account.on_delivered(&mut pool, 99);
        assert!(!account.is_report_due() && !account.is_told());
        account.on_delivered(&mut pool, 100);
        assert!(account.is_report_due());
        assert_eq!(account.grant(&mut pool, 400), (100, 500));
        assert!(account.is_told());
    }
}
