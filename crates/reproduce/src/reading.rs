//! The readings of the AeroTP papers' conditions, and a claim's judgement under each.

use crate::airborne::RATES;
use crate::claims::{ClaimFinding, ClaimVerdict};
use crate::data::Data;
use core::fmt::Write as _;

/// A family that runs the same experiment under other conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    family: &'static str,
    name: &'static str,
    octets: bool,
}

impl Reading {
    /// A reading with error rates per bit. The first reading of a list is the one as printed.
    pub(crate) const fn per_bit(family: &'static str, name: &'static str) -> Self {
        Self {
            family,
            name,
            octets: false,
        }
    }

    /// A reading with error rates per octet.
    pub(crate) const fn per_octet(family: &'static str, name: &'static str) -> Self {
        Self {
            family,
            name,
            octets: true,
        }
    }
}

/// The name of the reading as printed.
pub(crate) const PRINTED: &str = "as printed";

/// Every rate of the figures, as the claims name them.
pub(crate) const ALL: &[&str] = RATES;
/// The rates above 0.
pub(crate) const LOSSY: &[&str] = ALL.split_at(1).1;
/// The rates at which most figures' curves part.
pub(crate) const HIGH: &[&str] = ALL.split_at(3).1;
/// The highest rate.
pub(crate) const WORST: &str = "1e-4";

/// The share that counts as all of the data where a paper says "all": 17 of the 25 x 680 writes may be
/// missing.
pub(crate) const FULL: f64 = 0.999;

/// The runs of one reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) data: &'a Data,
    reading: Reading,
}

/// Judges a claim under each reading: the first gives verdict and figure, the verdicts of the others stand
/// in the comment.
pub(crate) fn in_each(
    data: &Data,
    readings: &[Reading],
    check: &dyn Fn(&View<'_>) -> Option<ClaimFinding>,
) -> Option<ClaimFinding> {
    let view = |reading: &Reading| View::of(data, *reading);
    let (first, others) = readings.split_first()?;
    let mut finding = check(&view(first))?;
    if others.is_empty() {
        return Some(finding);
    }
    finding.comment.push_str(OTHERS);
    let mut verdicts = Vec::new();
    for other in others {
        let found = check(&view(other));
        let told = found.as_ref().map_or_else(
            || "no value".to_owned(),
            |found| format!("{} ({})", found.verdict.name(), found.figure),
        );
        let _ = write!(finding.comment, "\n{}: {told}", other.name);
        verdicts.extend(found.map(|found| found.verdict));
    }
    Some(finding.beside(verdicts))
}

/// The check of a claim under each of some readings, see [`in_each`].
macro_rules! under {
    ($readings:expr, $check:expr) => {
        |data| $crate::reading::in_each(data, $readings, &$check)
    };
}
pub(crate) use under;

/// The heading of the other readings in a comment; each has a line of its own.
const OTHERS: &str = "\nUnder other readings:";

impl<'a> View<'a> {
    /// The runs of `reading`.
    pub(crate) const fn of(data: &'a Data, reading: Reading) -> Self {
        Self { data, reading }
    }
}

impl View<'_> {
    /// Whether this is the reading that gives the verdict.
    pub(crate) fn is_printed(&self) -> bool {
        self.reading.name == PRINTED
    }

    /// A measure's mean at a rate, or at another value of the family's parameter.
    pub(crate) fn at(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        self.data.mean(self.reading.family, line, rate, name)
    }

    /// Half the width of the interval of that mean.
    pub(crate) fn half(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        self.data.at(self.reading.family, line, rate, name)?.ci95
    }

    /// The number of runs behind a mean.
    pub(crate) fn runs(&self, line: &str, rate: &str) -> Option<f64> {
        let family = self.reading.family;
        let offered = self.data.at(family, line, rate, "offered_bytes")?;
        Some(offered.n as f64)
    }

    /// The goodput in bit/s.
    pub(crate) fn goodput(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "goodput_bps")
    }

    /// The delay in seconds.
    pub(crate) fn delay(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "delay_mean_s")
    }

    /// The overhead in octets.
    pub(crate) fn overhead(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "overhead_bytes")
    }

    /// The octets that were sent again.
    pub(crate) fn repeated(&self, line: &str, rate: &str) -> Option<f64> {
        self.at(line, rate, "wire_bytes.retransmission")
    }

    /// The share of the data that arrived.
    pub(crate) fn share(&self, line: &str, rate: &str) -> Option<f64> {
        Some(self.at(line, rate, "delivered_bytes")? / self.at(line, rate, "offered_bytes")?)
    }

    /// Two lines' measures at each of some rates.
    pub(crate) fn pairs<'r>(
        &self,
        rates: &[&'r str],
        of: impl Fn(&Self, &str) -> Option<(f64, f64)>,
    ) -> Option<Vec<(&'r str, f64, f64)>> {
        let pairs = rates.iter().map(|&rate| {
            let (a, b) = of(self, rate)?;
            Some((rate, a, b))
        });
        pairs.collect()
    }

    /// The rates of this reading, as claims name them.
    pub(crate) fn rates(&self) -> Option<Vec<&'static str>> {
        Some(self.data.family(self.reading.family)?.family.x.ids())
    }

    /// The probability that a number of octets has a wrong bit, at a rate.
    pub(crate) fn hit(&self, octets: u8, rate: &str) -> Option<f64> {
        let rate: f64 = rate.parse().ok()?;
        let trials = if self.reading.octets { 1 } else { 8 } * i32::from(octets);
        Some(1.0 - (1.0 - rate).powi(trials))
    }

    /// The spread of single runs, relative to their mean.
    pub(crate) fn spread(&self, line: &str, rate: &str, name: &str) -> Option<f64> {
        self.data.spread(self.reading.family, line, rate, name)
    }

    /// The shares of the data that arrived at 0 and at every rate above.
    pub(crate) fn shares(&self, line: &str) -> Option<Vec<f64>> {
        ALL.iter().map(|rate| self.share(line, rate)).collect()
    }

    /// The least share of the data that arrived at any of some rates.
    pub(crate) fn least_share(&self, line: &str, rates: &[&str]) -> Option<f64> {
        let shares = rates.iter().map(|rate| self.share(line, rate));
        let shares: Vec<f64> = shares.collect::<Option<_>>()?;
        shares.into_iter().reduce(f64::min)
    }

    /// Whether `line` delivers at least `share` at a rate.
    pub(crate) fn delivers(&self, line: &str, rate: &str, share: f64) -> bool {
        self.share(line, rate).is_some_and(|ours| ours >= share)
    }

    /// The growth of delay from 0 to the highest rate, in orders of magnitude.
    pub(crate) fn growth(&self, line: &str) -> Option<f64> {
        Some((self.delay(line, WORST)? / self.delay(line, "0")?).log10())
    }
}

/// The growth of delay of a line of another family, by bit error rate.
pub(crate) fn growth_of(data: &Data, family: &str, line: &str) -> Option<f64> {
    let delay = |rate| data.mean(family, line, rate, "delay_mean_s");
    Some((delay(WORST)? / delay("0")?).log10())
}

/// `12.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// `2.50 ms` or `1.95 s`.
pub(crate) fn seconds(value: f64) -> String {
    if value < 1.0 {
        format!("{:.2} ms", value * 1e3)
    } else {
        format!("{value:.2} s")
    }
}

/// `4.416 Mbit/s`.
pub(crate) fn rate(value: f64) -> String {
    format!("{:.3} Mbit/s", value / 1e6)
}

/// `74 kB`.
pub(crate) fn kilobytes(value: f64) -> String {
    format!("{:.0} kB", value / 1e3)
}

/// The number of `pairs` for which `holds` holds.
pub(crate) fn count(pairs: &[(&str, f64, f64)], holds: impl Fn(f64, f64) -> bool) -> usize {
    pairs.iter().filter(|(_, a, b)| holds(*a, *b)).count()
}

/// Whether each value is less than the one before.
pub(crate) fn falls(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[1] < pair[0])
}

/// The criterion for both papers' sentence that TCP backs off.
pub(crate) const BACKS_OFF: &str = "Reproduced if, at the highest rate at which it delivers half of the data, its goodput is less than a tenth of \
    that at 0; partly if less than half.";

/// Judges that TCP backs off. Rates at which a run delivers only a block or two are left out: goodput has
/// no meaning there.
pub(crate) fn backs_off(view: &View<'_>, tcp: &str) -> Option<ClaimFinding> {
    let highest = LOSSY.iter().rfind(|x| view.delivers(tcp, x, 0.5))?;
    let share = view.goodput(tcp, highest)? / view.goodput(tcp, "0")?;
    Some(ClaimFinding::bare(
        ClaimVerdict::of(share < 0.1, share < 0.5),
        format!("to {} at {highest}", percent(share)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClaimVerdict::{Not, Partly, Reproduced};

    fn judged(readings: &[Reading], verdicts: &[Option<ClaimVerdict>]) -> ClaimFinding {
        let data = Data {
            families: Vec::new(),
        };
        let check = |view: &View<'_>| {
            let number = readings.iter().position(|r| r.name == view.reading.name);
            let verdict = verdicts[number.expect("one of them")]?;
            Some(ClaimFinding::new(
                verdict,
                "not: 2 (of 3)".to_owned(),
                "It is not: partly.".to_owned(),
            ))
        };
        in_each(&data, readings, &check).expect("a value as printed")
    }

    #[test]
    fn the_verdicts_under_other_readings_stand_beside_the_first_and_are_told_in_the_comment() {
        let readings = [
            Reading::per_bit("a", PRINTED),
            Reading::per_bit("b", "10 ms"),
            Reading::per_octet("c", "rate per octet"),
            Reading::per_octet("d", "that and 10 ms"),
        ];
        let verdicts = [Some(Not), Some(Partly), None, Some(Reproduced)];
        let finding = judged(&readings, &verdicts);
        let comment = "It is not: partly.\nUnder other readings:\n10 ms: partly (not: 2 (of 3))\n\
            rate per octet: no value\nthat and 10 ms: reproduced (not: 2 (of 3))";
        assert_eq!(finding.comment, comment);
        let told = |verdict| ClaimFinding::new(verdict, finding.figure.clone(), comment.to_owned());
        assert_eq!(finding, told(Not).beside(vec![Partly, Reproduced]));
        let alone = judged(&readings[..1], &verdicts[..1]);
        assert_eq!(alone.comment, "It is not: partly.");
    }
}
