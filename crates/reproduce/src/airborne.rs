//! Common parts of the AeroTP papers' experiments: the link, its rates, the measures.

use crate::family::Family;
use crate::figure::Figure;
use crate::measure::{Measure, Quantity, Statistic};
use crate::overlay::Overlay;
use crate::parameter::{Axis, AxisUnit, SweptParameter};

/// The papers' link with ns-3's TCP.
pub(crate) const SCENARIO: (&str, &str) = (
    "scenarios/ns3-airborne.toml",
    include_str!("../../../scenarios/ns3-airborne.toml"),
);

/// Bit error rates of the papers' figures.
pub(crate) const RATES: &[&str] = &[
    "0", "1e-6", "5e-6", "1e-5", "2.5e-5", "3.5e-5", "5e-5", "7.5e-5", "1e-4",
];

/// The bit error rate of the link at each of these.
pub(crate) const BIT_ERROR_RATE: SweptParameter = SweptParameter::numbers(
    "hop.ber",
    RATES,
    "{}",
    Axis::linear("bit error rate", AxisUnit::NONE),
);

/// The same rates with the unit in which ns-3 counts errors by default, octets.
pub(crate) const fn octet_error_rate(caption: &'static str) -> SweptParameter {
    let axis = Axis::linear(caption, AxisUnit::PER_OCTET);
    SweptParameter::numbers("hop.ber", RATES, "{} per octet", axis)
}

pub(crate) const GOODPUT: Measure = Measure {
    name: "goodput_bps",
    unit: 1e6,
    unit_name: AxisUnit::MBIT_PER_S,
    label: "goodput",
    statistic: Statistic::Median,
    quantity: Quantity::Goodput,
};

pub(crate) const DELAY: Measure = Measure {
    name: "delay_mean_s",
    unit: 1e-3,
    unit_name: AxisUnit::MS,
    label: "mean delay",
    statistic: Statistic::Median,
    quantity: Quantity::Delay,
};

pub(crate) const DELIVERED: Measure = Measure {
    name: "delivered_bytes",
    unit: 1e3,
    unit_name: AxisUnit::KB,
    label: "delivered",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

pub(crate) const OVERHEAD: Measure = Measure {
    name: "overhead_bytes",
    unit: 1e3,
    unit_name: AxisUnit::KB,
    label: "overhead, both ways",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

/// The time of the last delivery, from the start of the run.
pub(crate) const LAST: Measure = Measure {
    name: "last_delivery_s",
    unit: 1.0,
    unit_name: AxisUnit::S,
    label: "time of the last delivery",
    statistic: Statistic::Mean,
    quantity: Quantity::Other,
};

/// The time from the request to connect to the first data at the receiving transport.
pub(crate) const FIRST_ARRIVAL: Measure = Measure {
    name: "first_arrival_s",
    label: "time to first data",
    statistic: Statistic::Mean,
    ..DELAY
};

/// The goodput that no scheme exceeds, and that which none exceeds that drops damaged packets.
pub(crate) const BOUNDS: &[(&str, &str)] = &[
    ("capacity_bps", "capacity of the link"),
    ("arq_bound_bps", "bound of plain ARQ"),
];

/// The papers' four figures of a family: goodput, delay, delivered data and overhead. Their ids are
/// `$before-MEASURE$after`, their titles the measure and `$reading`.
macro_rules! four_figures {
    ($family:expr, $places:expr, $before:literal, $after:literal, $($reading:literal),+ $(,)?) => {
        [
            $crate::figure::Figure::of(
                concat!($before, "-goodput", $after),
                $places[0],
                concat!("Goodput", $($reading),+),
                &$family,
                $crate::airborne::GOODPUT,
            ),
            $crate::figure::Figure::of(
                concat!($before, "-delay", $after),
                $places[1],
                concat!("Delay", $($reading),+),
                &$family,
                $crate::airborne::DELAY,
            ),
            $crate::figure::Figure::of(
                concat!($before, "-delivered", $after),
                $places[2],
                concat!("Delivered data", $($reading),+),
                &$family,
                $crate::airborne::DELIVERED,
            ),
            $crate::figure::Figure::of(
                concat!($before, "-overhead", $after),
                $places[3],
                concat!("Overhead", $($reading),+),
                &$family,
                $crate::airborne::OVERHEAD,
            )
            .logarithmic(),
        ]
    };
}
pub(crate) use four_figures;

/// The four figures, each with the points of other sources that belong to it.
pub(crate) const fn overlaid(
    figures: [Figure; 4],
    overlays: [&'static [Overlay]; 4],
) -> [Figure; 4] {
    let [goodput, delay, delivered, overhead] = figures;
    [
        goodput.overlaid(overlays[0]),
        delay.overlaid(overlays[1]),
        delivered.overlaid(overlays[2]),
        overhead.overlaid(overlays[3]),
    ]
}

impl Figure {
    /// The figure of a measure of a family: bounds beside goodput, and decades for measures that span many.
    pub(crate) const fn of(
        id: &'static str,
        place: &'static str,
        title: &'static str,
        family: &Family,
        measure: Measure,
    ) -> Self {
        let (bounds, logarithmic): (&[_], bool) = match measure.quantity {
            Quantity::Goodput => (BOUNDS, false),
            Quantity::Delay => (&[], true),
            Quantity::Other => (&[], false),
        };
        Self {
            id,
            place,
            title,
            family: family.id,
            measure,
            bounds,
            overlays: &[],
            logarithmic,
        }
    }

    /// The figure with points of other sources.
    pub(crate) const fn overlaid(self, overlays: &'static [Overlay]) -> Self {
        Self { overlays, ..self }
    }

    /// The figure with a linear axis.
    pub(crate) const fn linear(self) -> Self {
        Self {
            logarithmic: false,
            ..self
        }
    }

    /// The figure with a logarithmic axis.
    pub(crate) const fn logarithmic(self) -> Self {
        Self {
            logarithmic: true,
            ..self
        }
    }
}
