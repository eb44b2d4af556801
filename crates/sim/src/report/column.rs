//! The columns of the table for people.

use super::aggregate::AggregateRecord;

/// A column of the table for people.
#[derive(Clone, Copy, Debug)]
pub struct ReportColumn {
    /// The measure's flat name.
    pub name: &'static str,
    /// The heading, with the unit the value is shown in.
    pub heading: &'static str,
    /// The divisor that brings a value into that unit.
    pub unit: f64,
    /// Digits behind the point.
    pub digits: usize,
    /// The importance of the column: where there is no room, the lightest columns are left out.
    pub weight: u8,
    /// Whether a table is without it where no point has a value.
    pub optional: bool,
}

/// The columns of the table, in order.
pub const COLUMNS: [ReportColumn; 12] = [
    column("completed", "complete %", 0.01, 0, 70),
    column("delivered_bytes", "delivered kB", 1e3, 1, 40),
    column("goodput_bps", "goodput Mbit/s", 1e6, 3, 100),
    column("efficiency", "of capacity %", 0.01, 1, 90),
    column("delay_mean_s", "delay mean ms", 1e-3, 3, 85),
    column("delay_p99_s", "delay p99 ms", 1e-3, 3, 75),
    optional("in_time", "in time %", 0.01, 2, 95),
    optional("lost", "lost %", 0.01, 2, 88),
    optional("sent_per_byte", "octets for one", 1.0, 3, 92),
    column("first_arrival_s", "first data ms", 1e-3, 3, 80),
    column("overhead_bytes", "overhead kB", 1e3, 1, 60),
    column("corrupt_bytes", "corrupt B", 1.0, 1, 20),
];

const fn column(
    name: &'static str,
    heading: &'static str,
    unit: f64,
    digits: usize,
    weight: u8,
) -> ReportColumn {
    ReportColumn {
        name,
        heading,
        unit,
        digits,
        weight,
        optional: false,
    }
}

/// A column of flows whose messages are due at a time.
const fn optional(
    name: &'static str,
    heading: &'static str,
    unit: f64,
    digits: usize,
    weight: u8,
) -> ReportColumn {
    ReportColumn {
        optional: true,
        ..column(name, heading, unit, digits, weight)
    }
}

impl ReportColumn {
    /// The mean with its interval, as text.
    pub fn cell(&self, point: &AggregateRecord) -> String {
        let Some((mean, summary)) = point.summary(self.name).and_then(|s| Some((s.mean?, s)))
        else {
            return "-".to_owned();
        };
        let digits = self.digits;
        let mean = mean / self.unit;
        match summary.ci95.map(|ci| ci / self.unit) {
            Some(ci) if ci > 0.0 => format!("{mean:.digits$} ±{ci:.digits$}"),
            _ => format!("{mean:.digits$}"),
        }
    }
}
