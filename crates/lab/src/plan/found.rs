//! The rate that a sender would find on the link if nobody told it one: a short run in the simulator.

use super::forecast::{LossOnLink, PlanQuestion};
use fulmar_channel::{ChannelConfig, LossModel, QueueLimit};
use fulmar_proto::rate::RateConfig;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use fulmar_sim::bottleneck::{BottleneckPlan, DATAGRAM, SenderPlan, SenderStart, run};
use serde::Serialize;

/// Datagrams of a run, which takes a tenth of a second or so, and the most that one may have.
const DATAGRAMS: f64 = 100_000.0;
const DATAGRAMS_MAX: f64 = 1_000_000.0;
/// The least and the most seconds of a run, and the least in round trips.
const SECONDS_MIN: f64 = 2.0;
const SECONDS_MAX: f64 = 60.0;
const ROUNDS: f64 = 30.0;
/// The queue before the link: ns-3's default.
const QUEUE_PACKETS: u32 = 100;
/// The share of the rate with which the search counts as over.
const REACHED: f64 = 0.9;

/// The rate found; its fields are those of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct FoundRate {
    /// Bits that arrive in a second of the run's second half, headers included.
    pub arrives_bps: u64,
    /// The same as a share of what the link carries to the end: (1 - loss) × rate.
    pub share: f64,
    /// The time until 0.9 of the rate is sent; `null` if it never is.
    pub reached_after_s: Option<f64>,
    /// The mean wait in the link's queue.
    pub queueing_mean_s: f64,
    /// The share of what was sent that was dropped for lack of room: the sender's own doing.
    pub dropped_share: f64,
    /// The reason why it is not more.
    pub cause: &'static str,
    /// The time simulated.
    pub simulated_s: f64,
    queue_packets: u32,
    packet_bytes: u64,
}

impl FoundRate {
    /// The rate found on the link of `question`, or none where a run would take too long, or nothing arrives.
    ///
    /// # Errors
    /// No channel can be like that link.
    pub fn of(question: &PlanQuestion) -> Result<Option<Self>, fulmar_channel::ChannelConfigError> {
        let loss = match question.loss {
            LossOnLink::OfBits(rate) => rate.packet_error_rate(DATAGRAM.bits()),
            LossOnLink::OfPackets(rate) => rate,
        };
        let rate = question.rate.as_bits_per_second() as f64;
        let (packet_time, round_trip) = (
            DATAGRAM.bits() as f64 / rate,
            question.round_trip.as_secs_f64(),
        );
        let seconds = (DATAGRAMS * packet_time)
            .clamp(SECONDS_MIN, SECONDS_MAX)
            .max(ROUNDS * round_trip);
        if seconds / packet_time > DATAGRAMS_MAX || loss.value() >= 1.0 {
            return Ok(None);
        }
        let back = ChannelConfig {
            delay: question.round_trip / 2,
            loss: LossModel::Bernoulli(loss),
            ..ChannelConfig::default()
        };
        let out = ChannelConfig {
            rate: Some(question.rate),
            queue: QueueLimit::packets(QUEUE_PACKETS),
            ..back.clone()
        };
        let plan = BottleneckPlan {
            out: vec![(Instant::START, out)],
            back,
            policer: None,
            marks: false,
            clock_gain: 0.0,
        };
        let start = SenderStart {
            plan: SenderPlan::Found(RateConfig::default()),
            at: Instant::START,
        };
        let end = Instant::START + Duration::from_secs_f64(seconds);
        let outcomes = run(&plan, &[start], end, &Rng::from_seed(1))?;
        let Some(outcome) = outcomes.first() else {
            return Ok(None);
        };
        let (half, tenths) = (outcome.tenths.len() / 2, outcome.tenths.len());
        let arrived: u64 = outcome.tenths[half..].iter().sum();
        let arrives = arrived as f64 * 80.0 / (tenths - half).max(1) as f64;
        let reached = (outcome.sent_tenths.iter())
            .position(|sent| *sent as f64 * 80.0 >= REACHED * rate)
            .map(|tenth| (tenth + 1) as f64 / 10.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is positive and below the link's"
        )]
        let arrives_bps = arrives as u64;
        Ok(Some(Self {
            arrives_bps,
            share: arrives / (rate * (1.0 - loss.value())),
            reached_after_s: reached,
            queueing_mean_s: outcome.queue_mean.as_secs_f64(),
            dropped_share: outcome.dropped as f64 / outcome.sent.max(1) as f64,
            cause: outcome
                .belief
                .map_or("searching", |belief| belief.cause.name()),
            simulated_s: seconds,
            queue_packets: QUEUE_PACKETS,
            packet_bytes: DATAGRAM.0,
        }))
    }

    /// Why the rate is not more, for people.
    pub fn reason(&self) -> &'static str {
        match self.cause {
            "queue" => "more builds a queue",
            "cut" => "more is lost, without a queue",
            "shared" => "it takes the queue for others'",
            "searching" => "the search goes on",
            _ => "more was not tried yet",
        }
    }
}
