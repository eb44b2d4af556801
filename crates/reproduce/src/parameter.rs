//! The parameter that a family of runs sweeps, and axes with their units.

use std::sync::LazyLock;

/// A unit, in captions and in names of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisUnit {
    /// The text behind the name in a caption; empty if the name alone says all.
    shown: &'static str,
    /// The end of a column's name; empty if it has none.
    pub(crate) column: &'static str,
}

impl AxisUnit {
    pub(crate) const NONE: Self = Self::of("", "");
    pub(crate) const PERCENT: Self = Self::of("%", "percent");
    pub(crate) const S: Self = Self::of("s", "s");
    pub(crate) const MS: Self = Self::of("ms", "ms");
    pub(crate) const OCTETS: Self = Self::of("octets", "octets");
    pub(crate) const KB: Self = Self::of("kB", "kB");
    pub(crate) const MB: Self = Self::of("MB", "MB");
    pub(crate) const KBIT_PER_S: Self = Self::of("kbit/s", "kbit_per_s");
    pub(crate) const MBIT_PER_S: Self = Self::of("Mbit/s", "Mbit_per_s");
    pub(crate) const PACKETS: Self = Self::of("packets", "packets");
    pub(crate) const SHARE_OF_LINK: Self = Self::of("share of the link", "share");
    /// Errors for each octet, which captions tell in words.
    pub(crate) const PER_OCTET: Self = Self::of("", "per_octet");

    pub(crate) const fn of(shown: &'static str, column: &'static str) -> Self {
        Self { shown, column }
    }

    /// A name with the unit behind it: `delay / ms`.
    pub(crate) fn caption(self, name: &str) -> String {
        match self.shown {
            "" => name.to_owned(),
            shown => format!("{name} / {shown}"),
        }
    }

    /// A column's name with the unit behind it: `delay_ms`.
    fn column(self, name: &str) -> String {
        match self.column {
            "" => name.to_owned(),
            unit => format!("{name}_{unit}"),
        }
    }
}

/// The axis of a quantity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    name: &'static str,
    unit: AxisUnit,
    pub(crate) is_logarithmic: bool,
}

impl Axis {
    pub(crate) const fn linear(name: &'static str, unit: AxisUnit) -> Self {
        Self {
            name,
            unit,
            is_logarithmic: false,
        }
    }

    pub(crate) const fn logarithmic(name: &'static str, unit: AxisUnit) -> Self {
        Self {
            is_logarithmic: true,
            ..Self::linear(name, unit)
        }
    }

    /// Name and unit.
    pub(crate) fn caption(&self) -> String {
        self.unit.caption(self.name)
    }

    /// The name of the quantity's column: `bit_error_rate`.
    pub(crate) fn column(&self) -> String {
        let word = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let name: String = self.name.chars().map(word).collect();
        self.unit.column(&name)
    }
}

/// A parameter of a scenario, and the values that it takes in turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweptParameter {
    path: &'static str,
    values: Values,
    pub(crate) axis: Axis,
}

/// The values of a parameter.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// Numbers in the unit of the axis, and the text in which a scenario has one instead of each `{}`.
    Numbers(&'static [&'static str], &'static str),
    Names(&'static [ValueName]),
    /// Numbers in the unit of the axis, and for each what a scenario has for it: read from a table.
    Rows(&'static LazyLock<Vec<ValueRow>>),
}

/// A number at the axis, and what a scenario has for it.
#[derive(Clone, Debug)]
pub(crate) struct ValueRow {
    /// The number, in the unit of the axis.
    pub(crate) number: &'static str,
    /// The values in a scenario.
    pub(crate) written: String,
}

/// A value that is no number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueName {
    /// The name by which claims know it.
    pub(crate) id: &'static str,
    /// The value in a scenario.
    pub(crate) written: &'static str,
    /// The label at the axis.
    pub(crate) label: &'static str,
}

impl SweptParameter {
    /// A parameter whose values are numbers in the unit of its axis; a scenario has them in `form`, such as
    /// `{}kB`.
    pub(crate) const fn numbers(
        path: &'static str,
        values: &'static [&'static str],
        form: &'static str,
        axis: Axis,
    ) -> Self {
        Self {
            path,
            values: Values::Numbers(values, form),
            axis,
        }
    }

    /// A parameter whose values are names, which stand at equal distances in their order.
    pub(crate) const fn names(
        path: &'static str,
        values: &'static [ValueName],
        caption: &'static str,
    ) -> Self {
        Self {
            path,
            values: Values::Names(values),
            axis: Axis::linear(caption, AxisUnit::NONE),
        }
    }

    /// Parameters that follow from the number at the axis, row by row.
    pub(crate) const fn rows(
        path: &'static str,
        rows: &'static LazyLock<Vec<ValueRow>>,
        axis: Axis,
    ) -> Self {
        Self {
            path,
            values: Values::Rows(rows),
            axis,
        }
    }

    pub(crate) const fn path(&self) -> &'static str {
        self.path
    }

    /// The values as claims name them.
    pub(crate) fn ids(&self) -> Vec<&'static str> {
        match self.values {
            Values::Numbers(numbers, _) => numbers.to_vec(),
            Values::Names(names) => names.iter().map(|name| name.id).collect(),
            Values::Rows(rows) => rows.iter().map(|row| row.number).collect(),
        }
    }

    /// The values as a scenario has them.
    pub(crate) fn written(&self) -> Vec<String> {
        match self.values {
            Values::Numbers(numbers, form) => {
                let written = |number: &&str| form.replace("{}", number);
                numbers.iter().map(written).collect()
            }
            Values::Names(names) => names.iter().map(|name| name.written.to_owned()).collect(),
            Values::Rows(rows) => rows.iter().map(|row| row.written.clone()).collect(),
        }
    }

    /// The place of each value on the axis: its number, or its position in the list if the values are
    /// names.
    pub(crate) fn places(&self) -> Vec<f64> {
        let number = |text: &str| text.parse().unwrap_or(f64::NAN);
        match self.values {
            Values::Numbers(numbers, _) => numbers.iter().map(|text| number(text)).collect(),
            Values::Rows(rows) => rows.iter().map(|row| number(row.number)).collect(),
            Values::Names(names) => (0_u32..).map(f64::from).take(names.len()).collect(),
        }
    }

    /// The name of the parameter's column in the data: its path, and the unit of its numbers; that of the axis where
    /// parameters follow from its numbers.
    pub(crate) fn column(&self) -> String {
        if let Values::Rows(_) = self.values {
            return self.axis.column();
        }
        let path = self.path.replace('.', "_").replace(", ", "+");
        self.axis.unit.column(&path)
    }

    /// The value at a place as the data have it: its number in the unit of the column, or its name, with semicolons for commas.
    pub(crate) fn value_at(&self, x: f64) -> String {
        let name = self.name_at(x);
        name.map_or_else(|| x.to_string(), |name| name.written.replace(',', ";"))
    }

    /// The label of an axis of names at `x`, empty between them. `None` on an axis of numbers.
    pub(crate) fn label_at(&self, x: f64) -> Option<&'static str> {
        match self.values {
            Values::Numbers(..) | Values::Rows(_) => None,
            Values::Names(_) => Some(self.name_at(x).map_or("", |name| name.label)),
        }
    }

    fn name_at(&self, x: f64) -> Option<&'static ValueName> {
        let Values::Names(names) = self.values else {
            return None;
        };
        let mut named = names.iter().zip(self.places());
        let here = named.find(|(_, place)| (place - x).abs() < 1e-9);
        here.map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_has_a_number_in_its_form_and_an_axis_has_it_alone() {
        let timers = SweptParameter::numbers(
            "tcp.rto_min, tcp.rto_max",
            &["20", "0.5"],
            "[{}ms,{}ms]",
            Axis::linear("timeout", AxisUnit::MS),
        );
        assert_eq!(timers.written(), ["[20ms,20ms]", "[0.5ms,0.5ms]"]);
        assert_eq!(timers.places(), [20.0, 0.5]);
        assert_eq!(timers.value_at(0.5), "0.5");
        assert_eq!(timers.label_at(0.5), None);
        assert_eq!(timers.column(), "tcp_rto_min+tcp_rto_max_ms");
        assert_eq!(timers.axis.caption(), "timeout / ms");
    }

    #[test]
    fn a_name_stands_at_its_position() {
        const MODELS: &[ValueName] = &[
            ValueName {
                id: "none",
                written: "none",
                label: "none",
            },
            ValueName {
                id: "huge-literal",
                written: "slacp huge-literal",
                label: "literal",
            },
        ];
        let models = SweptParameter::names("hop.loss", MODELS, "error model");
        assert_eq!(models.ids(), ["none", "huge-literal"]);
        assert_eq!(models.places(), [0.0, 1.0]);
        assert_eq!(models.value_at(1.0), "slacp huge-literal");
        assert_eq!(models.label_at(1.0), Some("literal"));
        assert_eq!(models.label_at(0.5), Some(""));
        assert_eq!(models.column(), "hop_loss");
    }

    #[test]
    fn every_number_of_the_papers_is_one_and_no_column_needs_quotes() {
        for family in crate::PAPERS.iter().flat_map(|paper| paper.families) {
            let (column, places) = (family.x.column(), family.x.places());
            assert!(!column.contains([',', ' ', '"']), "{column}");
            assert!(places.iter().all(|place| place.is_finite()), "{column}");
        }
    }
}
