//! `fulmar plan`: a link's goodput by the closed forms, before anything is sent over it.

use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use crate::table::{Columns, HEAVIEST, Listing};
use anyhow::{Context, anyhow};
use fulmar_lab::plan::{
    ArqForecast, FoundRate, LinkErrors, LossOnLink, PlanForecast, PlanQuestion, PlanWish,
    PlannedLink,
};
use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Distance, Duration, OpticalPower, PacketErrorRate,
    Probability, parse_duration,
};
use fulmar_sim::theory::{ReceiverModel, round_trip_time};
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  fulmar plan --rate 622mbit --distance 61km --ber 1e-6
      a free-space optical link over 61 km: which repetition, which packet length, which window
  fulmar plan --rate 622mbit --distance 2500km --power -44.3dBm --selective-header 60B --data 500B
      a satellite seen by the reference receiver, with packets of 500 octets
  fulmar plan --rate 5mbit --rtt 20ms --loss 10% --data 1400B --json
      packets lost whole, whatever their length; one JSON object

Closed forms are bounds: no fading, a link that is always busy, ideal timers (docs/guide/plan.md). The
last line is a short simulation: what a sender that is told no rate reaches there, and why not more.
";

/// The arguments of `fulmar plan`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("way").required(true).args(["distance", "rtt"]))]
#[command(group = clap::ArgGroup::new("errors").required(true).args(["ber", "power", "loss"]))]
pub(crate) struct PlanArgs {
    /// Rate of the link, such as 622Mbit/s.
    #[arg(long, value_name = "RATE")]
    rate: Bitrate,
    /// Length of the link in free space, such as 61km: the round trip is light's.
    #[arg(long, value_name = "DISTANCE")]
    distance: Option<Distance>,
    /// Round-trip time, such as 10ms.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    rtt: Option<Duration>,
    /// With --distance: the time that the far end takes to answer.
    #[arg(long, value_name = "TIME", default_value = "0s", requires = "distance")]
    #[arg(value_parser = parse_duration)]
    processing: Duration,
    /// Share of bits inverted, each for itself, such as 1e-6.
    #[arg(long, value_name = "SHARE")]
    ber: Option<BitErrorRate>,
    /// Received optical power, such as -44.3dBm or 37.2nW, at the reference receiver (622Mbit/s).
    #[arg(long, value_name = "POWER", allow_hyphen_values = true)]
    power: Option<OpticalPower>,
    /// Share of packets lost whatever their length, such as 2%.
    #[arg(long, value_name = "SHARE")]
    loss: Option<PacketErrorRate>,
    /// Headers of each packet, all layers.
    #[arg(long, value_name = "BYTES", default_value = "20B")]
    header: ByteCount,
    /// Headers with selective repeat, if its lists make them longer.
    #[arg(long, value_name = "BYTES")]
    selective_header: Option<ByteCount>,
    /// User data of each packet; without it the best length of each class.
    #[arg(long, value_name = "BYTES")]
    data: Option<ByteCount>,
    /// The longest packet that may be advised, headers included; without it 1500B, the usual MTU, or what --data
    /// needs.
    #[arg(long, value_name = "BYTES")]
    longest: Option<ByteCount>,
    /// An acknowledgement, one for each packet.
    #[arg(long, value_name = "BYTES", default_value = "40B")]
    ack: ByteCount,
    /// Bits inverted on the way back: a lost acknowledgement then counts as a lost packet.
    #[arg(long, value_name = "SHARE", default_value = "0")]
    back_ber: BitErrorRate,
    /// Probability with which the number of blocks shall suffice.
    #[arg(long, value_name = "SHARE", default_value = "99%")]
    confidence: Probability,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    columns: Columns,
}

impl PlanArgs {
    /// The question as checked settings.
    fn question(&self) -> Result<PlanQuestion, Failure> {
        let wish = PlanWish {
            rate: self.rate,
            round_trip: match (self.distance, self.rtt) {
                (Some(distance), _) => round_trip_time(distance, self.processing),
                (None, rtt) => rtt.unwrap_or_default(),
            },
            errors: match (self.loss, self.power) {
                (Some(loss), _) => LinkErrors::Packets(loss),
                (None, Some(power)) => LinkErrors::Power(power),
                (None, None) => LinkErrors::Bits(self.ber.unwrap_or_default()),
            },
            header: self.header,
            selective_header: self.selective_header,
            data: self.data,
            longest: self.longest,
            acknowledgement: self.ack,
            back: self.back_ber,
            confidence: self.confidence,
        };
        let checked = wish.checked().map_err(|error| match error.name {
            // The cure has flags in it.
            "power" => anyhow!(
                "--power needs --rate {}: the receiver was measured at that rate alone; for {} give --ber",
                ReceiverModel::reference().rate,
                self.rate
            ),
            _ => anyhow!("--{error}"),
        });
        checked.or_exit(Exit::Usage)
    }
}

/// Computes and prints.
///
/// # Errors
/// Arguments that contradict each other; stdout cannot be written.
pub(crate) fn run(args: &PlanArgs) -> Result<Exit, Failure> {
    let question = args.question()?;
    let plan = PlannedLink::of(&question)
        .context("simulating it")
        .or_exit(Exit::Usage)?;
    if args.json {
        output::record(&plan)?;
    } else {
        let table = table(&plan.forecast).chosen(&args.columns)?;
        let mut text = text(&question, &plan.forecast, &table)?;
        write!(text, "{}", found_text(plan.found.as_ref())).context("writing text")?;
        output::line(text.trim_end())?;
    }
    Ok(Exit::Done)
}

/// The weights of the columns: goodput first, then the columns that the last line explains.
const WEIGHTS: [u8; 10] = [HEAVIEST, 40, 45, 60, 100, 95, 80, 70, 90, 85];

fn table(forecast: &PlanForecast) -> Listing {
    let headings = [
        "repetition",
        "header",
        "data",
        "lost",
        "goodput",
        "of the rate",
        "best data",
        "goodput there",
        "window",
        "way back",
    ];
    let mut table = Listing::new(headings, 1).weigh(WEIGHTS);
    for kind in &forecast.kinds {
        table.row(row(kind));
    }
    table
}

fn text(
    question: &PlanQuestion,
    forecast: &PlanForecast,
    table: &Listing,
) -> anyhow::Result<String> {
    let mut text = String::new();
    write!(
        text,
        "{}, round trip {}, ",
        question.rate,
        shown_time(question.round_trip)
    )?;
    match question.loss {
        LossOnLink::OfBits(rate) => {
            writeln!(text, "bit error rate {:e}", four_digits(rate.value()))?;
        }
        LossOnLink::OfPackets(rate) => {
            let percent = four_digits(rate.value() * 100.0);
            writeln!(text, "{percent} % of packets lost")?;
        }
    }
    writeln!(text, "{table}")?;
    match &forecast.blocks {
        Some(blocks) => writeln!(
            text,
            "selective repeat has {:.1} blocks to tell apart in the mean, {:.1} with {} % confidence; \
             TCP's SACK option names 4",
            blocks.mean,
            blocks.quantile,
            blocks.confidence * 100.0
        )?,
        None => writeln!(text, "every packet is lost: nothing gets through")?,
    }
    writeln!(
        text,
        "these are bounds for a busy link without fading; window: octets in flight; way back: share \
         of a rate as high"
    )?;
    Ok(text)
}

/// The rate found, in a sentence.
fn found_text(found: Option<&FoundRate>) -> String {
    let Some(found) = found else {
        return "a sender that is told no rate: not simulated, it would take too long\n".to_owned();
    };
    let reached = match found.reached_after_s {
        Some(seconds) => format!("after {seconds:.1} s"),
        None => "never 0.9 of the rate".to_owned(),
    };
    format!(
        "a sender that is told no rate finds it {reached}: then {} arrive, {:.3} of what the link carries; not more \
         because {} (mean wait {}, {:.2} % dropped by its own doing, {:.0} s simulated)\n",
        to_four_digits(found.arrives_bps),
        found.share,
        found.reason(),
        shown_time(Duration::from_secs_f64(found.queueing_mean_s)),
        found.dropped_share * 100.0,
        found.simulated_s,
    )
}

/// A time in the unit that a person would take; JSON has the exact figure.
fn shown_time(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    let (unit, size) = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6)]
        .into_iter()
        .find(|(_, size)| seconds >= *size)
        .unwrap_or(("ns", 1e-9));
    format!("{}{unit}", four_digits(seconds / size))
}

/// A value rounded to four significant digits.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// A rate rounded to four digits, which is more exact than the equations' assumptions.
fn to_four_digits(bits_per_second: u64) -> Bitrate {
    let digits = bits_per_second.checked_ilog10().unwrap_or_default();
    let step = 10_u64.pow(digits.saturating_sub(3));
    let rounded = (bits_per_second + step / 2) / step * step;
    Bitrate::from_bits_per_second(rounded)
}

fn row(kind: &ArqForecast) -> [String; 10] {
    [
        kind.name.to_owned(),
        format!("{}B", kind.header_bytes),
        format!("{}B", kind.data_bytes),
        format!("{:.4} %", kind.packet_loss * 100.0),
        to_four_digits(kind.goodput_bps).to_string(),
        format!("{:.4}", kind.goodput_share),
        if kind.best_is_longest {
            format!("{}B (longest)", kind.best_data_bytes)
        } else {
            format!("{}B", kind.best_data_bytes)
        },
        format!("{:.4}", kind.best_goodput_share),
        format!("{}B", kind.window_bytes),
        format!("{:.2} %", kind.back_channel_share * 100.0),
    ]
}
