//! A schedule file: what a link will be and when, such as the passes of a satellite (`docs/guide/links.md`).

use fulmar_channel::fading::ReceiverModel;
use fulmar_proto::told::{LinkNews, PlannedOutage, TOLD_RATES};
use fulmar_proto::units::{BitErrorRate, Bitrate, Duration, Instant, OpticalPower, parse_duration};
use std::path::Path;
use std::{fs, io};

/// The largest file, and the most lines.
const FILE_BYTES_MAX: u64 = 16 << 20;
const STEPS_MAX: usize = 200_000;
/// The longest pause between two looks: a clock may be set meanwhile.
const PAUSE_MOST: Duration = Duration::from_secs(60);
/// The shortest: a step that ends now is over at the next look.
const PAUSE_LEAST: Duration = Duration::from_millis(1);
/// The outage behind the last line.
const FOR_GOOD: Duration = Duration::from_secs(31_536_000);
const EXAMPLE: &str = "write a first line of from,until,rate and, if known, ber or power";

/// The reason why a file is no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// It cannot be read.
    #[error("it cannot be read: {0}; see that it is there and this user may read it")]
    Read(#[from] io::Error),
    /// It is too long.
    #[error("it has more than {STEPS_MAX} lines or 16 MiB; leave out what is over")]
    Long,
    /// A line makes no sense.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// The fault, and its cure.
        problem: String,
    },
}

/// A span of a schedule in which the link is the same.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Since 1970, or since the start of the gateway.
    from: Duration,
    until: Duration,
    rate: Bitrate,
    bit_errors: Option<BitErrorRate>,
}

/// A link's plan: outside of its steps it is down.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkSchedule {
    steps: Vec<Step>,
    /// Whether times are of the day; else they count from the gateway's start.
    is_dated: bool,
}

/// The columns of a file, by their places.
#[derive(Clone, Copy, Debug)]
struct Columns {
    from: usize,
    until: usize,
    rate: usize,
    ber: Option<usize>,
    power: Option<usize>,
    /// The number of columns.
    count: usize,
}

impl Columns {
    fn read(line: &str) -> Result<Self, String> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        let place = |name: &str| names.iter().position(|one| *one == name);
        let known = ["from", "until", "rate", "ber", "power"];
        if let Some(other) = names.iter().find(|name| !known.contains(name)) {
            return Err(format!("there is no column `{other}`; {EXAMPLE}"));
        }
        let mut named = names.iter().enumerate();
        if let Some((_, twice)) =
            named.find(|(place, name)| names.iter().take(*place).any(|one| one == *name))
        {
            return Err(format!(
                "the column `{twice}` is there twice; leave one out"
            ));
        }
        let needs = |name: &str| {
            place(name).ok_or_else(|| format!("the column `{name}` is missing; {EXAMPLE}"))
        };
        let columns = Self {
            from: needs("from")?,
            until: needs("until")?,
            rate: needs("rate")?,
            ber: place("ber"),
            power: place("power"),
            count: names.len(),
        };
        if columns.ber.is_some() && columns.power.is_some() {
            return Err("`ber` and `power` say the same; leave one out".to_owned());
        }
        Ok(columns)
    }
}

/// A time of a line: a span since the start, or a time of day in UTC.
fn time(field: &str, text: &str) -> Result<(Duration, bool), String> {
    if let Some(at) = utc(text) {
        return Ok((at, true));
    }
    let span = parse_duration(text).map_err(|_| {
        format!(
            "`{field}` is `{text}`; write 2026-11-28T10:00:00Z, or 90s since the gateway's start"
        )
    })?;
    Ok((span, false))
}

/// A time as RFC 3339 has it, in UTC: seconds since 1970.
fn utc(text: &str) -> Option<Duration> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str, digits: usize| {
        let is_whole = text.len() == digits && text.bytes().all(|c| c.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_whole)
    };
    let mut date = date.split('-');
    let (year, month, day) = (
        number(date.next()?, 4)?,
        number(date.next()?, 2)?,
        number(date.next()?, 2)?,
    );
    let (clock, part) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.split(':');
    let (hour, minute, second) = (
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
    );
    if date.next().is_some() || clock.next().is_some() {
        return None;
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = [
        31,
        if is_leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let before = usize::try_from(month).ok()?.checked_sub(1)?;
    let fits = (1970..=9999).contains(&year) && (1..=*days_of.get(before)?).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let years = 365 * (year - 1970) + leaps(year - 1) - leaps(1969);
    let days = years + days_of.iter().take(before).sum::<u64>() + day - 1;
    let fraction = if part.len() <= 9 && part.bytes().all(|c| c.is_ascii_digit()) {
        format!("0.{part}").parse::<f64>().ok()?
    } else {
        return None;
    };
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Duration::from_secs(seconds) + Duration::from_secs_f64(fraction))
}

impl LinkSchedule {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub(super) fn open(path: &Path) -> Result<Self, ScheduleError> {
        if fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(ScheduleError::Long);
        }
        Self::read(&fs::read_to_string(path)?)
    }

    fn read(text: &str) -> Result<Self, ScheduleError> {
        let lines = (1..).zip(text.lines());
        let mut lines = lines.filter_map(|(number, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            (!line.is_empty()).then_some((number, line))
        });
        let wrong = |line: usize| move |problem: String| ScheduleError::Line { line, problem };
        let (number, head) = lines
            .next()
            .ok_or_else(|| wrong(1)(format!("there is none; {EXAMPLE}")))?;
        let columns = Columns::read(head).map_err(wrong(number))?;
        let mut steps: Vec<Step> = Vec::new();
        let mut is_dated = None;
        for (number, line) in lines {
            if steps.len() == STEPS_MAX {
                return Err(ScheduleError::Long);
            }
            let (step, dated) = step(columns, line).map_err(wrong(number))?;
            if *is_dated.get_or_insert(dated) != dated {
                let problem = "it counts from the gateway's start and others name times of day; write all in one way";
                return Err(wrong(number)(problem.to_owned()));
            }
            if steps.last().is_some_and(|last| last.until > step.from) {
                let problem =
                    "it begins before the line above it ends; write them in order, without overlap";
                return Err(wrong(number)(problem.to_owned()));
            }
            steps.push(step);
        }
        if steps.is_empty() {
            return Err(wrong(number)(
                "there is no line below it: the link would never be up; write one".to_owned(),
            ));
        }
        Ok(Self {
            steps,
            is_dated: is_dated.unwrap_or(false),
        })
    }

    /// The plan in words, as it is at `day` since 1970.
    pub(super) fn in_words(&self, day: Duration) -> String {
        let up: Duration = self
            .steps
            .iter()
            .map(|step| step.until.saturating_sub(step.from))
            .sum();
        let spans = match self.steps.len() {
            1 => "one span".to_owned(),
            count => format!("{count} spans"),
        };
        let at = if self.is_dated { day } else { Duration::ZERO };
        let seconds = |span: Duration| span.as_secs();
        let next = match self.steps.iter().find(|step| step.until > at) {
            None => "all of them are over".to_owned(),
            Some(step) if step.from <= at && self.is_dated => {
                format!(
                    "one of them lasts {} s more",
                    seconds(step.until.saturating_sub(at))
                )
            }
            Some(step) if self.is_dated => {
                format!(
                    "the next begins in {} s",
                    seconds(step.from.saturating_sub(at))
                )
            }
            Some(step) => {
                format!(
                    "the first begins {} s after the gateway's start",
                    seconds(step.from)
                )
            }
        };
        format!("up in {spans}, {} s in all; {next}", seconds(up))
    }

    /// The link at `now`, which is `day` since 1970 and so long after the gateway's start; and the time for which that holds.
    pub(super) fn news(&self, now: Instant, day: Duration) -> (LinkNews, Duration) {
        let at = if self.is_dated {
            day
        } else {
            now.saturating_since(Instant::START)
        };
        let place = self.steps.partition_point(|step| step.until <= at);
        let rest = self.steps.get(place..).unwrap_or_default();
        let outage = |begins: Duration, next: Option<&Step>| PlannedOutage {
            begins: now + begins.saturating_sub(at),
            lasts: next.map_or(FOR_GOOD, |next| next.from.saturating_sub(begins.max(at))),
        };
        let Some(step) = rest.first().filter(|step| step.from <= at) else {
            let next = rest.first();
            let news = LinkNews {
                is_up: Some(false),
                outage: Some(outage(at, next)),
                ..LinkNews::default()
            };
            let lasts = next.map_or(PAUSE_MOST, |next| next.from.saturating_sub(at));
            return (news, bounded(lasts));
        };
        let gap = rest
            .windows(2)
            .position(|pair| matches!(pair, [one, next] if one.until < next.from));
        let last = gap.unwrap_or(rest.len() - 1);
        let ends = rest.get(last).map_or(step.until, |step| step.until);
        let news = LinkNews {
            is_up: Some(true),
            rate_out: Some(step.rate),
            bit_errors_out: step.bit_errors,
            outage: Some(outage(ends, rest.get(last + 1))),
            ..LinkNews::default()
        };
        (news, bounded(step.until.saturating_sub(at)))
    }
}

fn bounded(span: Duration) -> Duration {
    span.clamp(PAUSE_LEAST, PAUSE_MOST)
}

fn step(columns: Columns, line: &str) -> Result<(Step, bool), String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    // The last column may be left out where it is one that may be empty.
    let is_last_optional = [columns.ber, columns.power].contains(&Some(columns.count - 1));
    let is_short = is_last_optional && fields.len() + 1 == columns.count;
    if fields.len() != columns.count && !is_short {
        return Err(format!(
            "it has {} fields, and the first line names {}; write one for each, with a comma between two",
            fields.len(),
            columns.count
        ));
    }
    let get = |place: usize| fields.get(place).copied().unwrap_or_default();
    let (from, dated) = time("from", get(columns.from))?;
    let (until, until_dated) = time("until", get(columns.until))?;
    if dated != until_dated {
        return Err("`from` and `until` are of different kinds; write both as times of day, or both as spans".to_owned());
    }
    if until <= from {
        return Err("`until` is not later than `from`; exchange them".to_owned());
    }
    let rate = get(columns.rate);
    let rate: Bitrate = rate
        .parse()
        .map_err(|_| format!("`rate` is `{rate}`; write 2mbit"))?;
    let bits = rate.as_bits_per_second();
    if bits < *TOLD_RATES.start() {
        return Err(
            "`rate` is below 1kbit; leave the line out where the link carries nothing".to_owned(),
        );
    }
    if bits > *TOLD_RATES.end() {
        return Err("`rate` is above 1tbit; no link is so fast, write its own".to_owned());
    }
    let ber = columns.ber.map(get).filter(|text| !text.is_empty());
    let ber = ber.map(|text| {
        let rate = text
            .parse::<BitErrorRate>()
            .ok()
            .filter(|rate| rate.value() <= 0.5);
        rate.ok_or_else(|| format!("`ber` is `{text}`; write 1e-6, 0.5 at most"))
    });
    let power = columns.power.map(get).filter(|text| !text.is_empty());
    let power = power.map(|text| {
        let power = text.parse::<OpticalPower>();
        let power = power.map_err(|_| {
            format!("`power` is `{text}`; write the power received, as -44dBm or 40nW")
        })?;
        Ok(ReceiverModel::reference().bit_error_rate(power))
    });
    let bit_errors = ber.or(power).transpose()?;
    Ok((
        Step {
            from,
            until,
            rate,
            bit_errors,
        },
        dated,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASS: &str = "# a pass\nfrom, until, rate, ber\n10s, 20s, 1mbit, 1e-5\n20s, 30s, 2mbit,\n40s, 50s, 1mbit, 1e-6 # low\n";

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_link_is_up_in_its_spans_and_knows_its_outages() {
        let pass = LinkSchedule::read(PASS).expect("sound");
        let (news, lasts) = pass.news(at(0), Duration::ZERO);
        assert_eq!((news.is_up, lasts), (Some(false), seconds(10)));
        assert_eq!(
            news.outage,
            Some(PlannedOutage {
                begins: at(0),
                lasts: seconds(10)
            })
        );
        let (news, lasts) = pass.news(at(12_000), Duration::ZERO);
        assert_eq!((news.is_up, lasts), (Some(true), seconds(8)));
        assert_eq!(
            news.rate_out,
            Some(Bitrate::from_bits_per_second(1_000_000))
        );
        assert_eq!(news.bit_errors_out, BitErrorRate::new(1e-5));
        let gap = Some(PlannedOutage {
            begins: at(30_000),
            lasts: seconds(10),
        });
        assert_eq!(news.outage, gap, "over the seam between two spans");
        let (news, _) = pass.news(at(20_000), Duration::ZERO);
        assert_eq!(
            news.rate_out,
            Some(Bitrate::from_bits_per_second(2_000_000))
        );
        assert_eq!((news.bit_errors_out, news.outage), (None, gap));
        let (news, lasts) = pass.news(at(60_000), Duration::ZERO);
        assert_eq!((news.is_up, lasts), (Some(false), PAUSE_MOST));
    }

    #[test]
    fn times_of_day_are_utc_and_count_the_days_of_each_year() {
        assert_eq!(utc("1970-01-02T00:00:01Z"), Some(seconds(86_401)));
        assert_eq!(utc("2000-03-01T00:00:00Z"), Some(seconds(951_868_800)));
        assert_eq!(
            utc("2026-11-28T10:00:00.5Z"),
            Some(Duration::from_millis(1_795_860_000_500))
        );
        for wrong in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-28T24:00:00Z",
            "2026-11-28 10:00:00Z",
            "2026-11-28T10:00:00",
            "2026-1-28T10:00:00Z",
        ] {
            assert_eq!(utc(wrong), None, "{wrong}");
        }
        let day = LinkSchedule::read(
            "from,until,rate\n2026-11-28T10:00:00Z,2026-11-28T10:01:00Z,2mbit\n",
        )
        .expect("sound");
        let (news, lasts) = day.news(at(5), Duration::from_secs(1_795_860_030));
        assert_eq!((news.is_up, lasts), (Some(true), seconds(30)));
    }

    #[test]
    fn power_is_wrong_bits_by_the_receiver_of_the_optical_model() {
        let pass =
            LinkSchedule::read("from,until,rate,power\n0s,10s,622mbit,-44.3dBm\n").expect("sound");
        let (news, _) = pass.news(at(0), Duration::ZERO);
        let bits = news.bit_errors_out.expect("it follows").value();
        assert!((5e-7..2e-6).contains(&bits), "{bits}");
    }

    #[test]
    fn a_plan_is_said_in_words() {
        let pass = LinkSchedule::read(PASS).expect("sound");
        let said = "up in 3 spans, 30 s in all; the first begins 10 s after the gateway's start";
        assert_eq!(pass.in_words(seconds(1_795_860_000)), said);
        let day = LinkSchedule::read(
            "from,until,rate,ber\n2026-11-28T10:00:00Z,2026-11-28T10:01:00Z,2mbit\n",
        )
        .expect("the last column may be left out");
        for (at, said) in [
            (1_795_859_990, "the next begins in 10 s"),
            (1_795_860_030, "one of them lasts 30 s more"),
            (1_795_860_060, "all of them are over"),
        ] {
            let said = format!("up in one span, 60 s in all; {said}");
            assert_eq!(day.in_words(seconds(at)), said);
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_the_line_and_the_cure() {
        for (text, said) in [
            ("", "line 1: there is none; write a first line"),
            ("from,until\n", "line 1: the column `rate` is missing"),
            ("from,until,rate,snr\n", "there is no column `snr`"),
            ("from,until,rate,ber,power\n", "leave one out"),
            ("from,until,rate\n", "the link would never be up"),
            (
                "from,until,rate\n0s,10s,2\n",
                "line 2: `rate` is `2`; write 2mbit",
            ),
            (
                "from,until,rate\n\n0s,10,2mbit\n",
                "line 3: `until` is `10`; write 2026-",
            ),
            ("from,until,rate\n10s,10s,2mbit\n", "exchange them"),
            (
                "from,until,rate\n0s,10s,2mbit\n9s,20s,2mbit\n",
                "line 3: it begins before the line above it ends",
            ),
            (
                "from,until,rate\n0s,10s,2mbit\n2026-11-28T10:00:00Z,2026-11-28T10:01:00Z,2mbit\n",
                "write all in one way",
            ),
            (
                "from,until,rate,ber,ber\n",
                "the column `ber` is there twice",
            ),
            (
                "from,until,rate,ber\n0s,10s,2mbit,1e-5,0.1\n",
                "line 2: it has 5 fields, and the first line names 4",
            ),
            (
                "from,until,rate\n0s,10s\n",
                "line 2: it has 2 fields, and the first line names 3",
            ),
            (
                "from,until,ber,rate\n0s,10s,2mbit\n",
                "line 2: it has 3 fields, and the first line names 4",
            ),
            ("from,until,rate\n0s,10s,5000gbit\n", "above 1tbit"),
            (
                "from,until,rate,ber\n0s,10s,2mbit,2\n",
                "`ber` is `2`; write 1e-6",
            ),
        ] {
            let error = LinkSchedule::read(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
