//! Tables for people. On a terminal a table fits the width: headings and cells break between words, never
//! within one, and columns that still find no room are left out, the lightest first, and named. Elsewhere
//! each row is one line, as wide as its cells.

use crate::exit::{Failure, OrExit};
use anyhow::anyhow;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableStyle, Width, presets,
};
use console::Term;
use core::fmt::{self, Display};

/// The flag that chooses columns.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Columns {
    /// Only these columns of the table, in this order: headings or their beginnings, such as goodput,overhead.
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        conflicts_with = "json"
    )]
    pub(crate) columns: Vec<String>,
}

/// A column: its heading, and its properties.
struct Column {
    heading: String,
    /// Another name for it, which records use.
    name: Option<&'static str>,
    /// The weight: where room is short, the columns of least weight are left out; of equal ones, the last.
    weight: u8,
    is_number: bool,
}

/// A table with its headings.
pub(crate) struct Listing {
    style: TableStyle,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// The width of the blanks and the border around the text of a column.
const AROUND: usize = 3;
const PADDING: u16 = 2;
/// The weight of a column that is left out last.
pub(crate) const HEAVIEST: u8 = u8::MAX;
/// The weight of a column of numbers that has been given no other.
const USUAL: u8 = 128;

/// A heading as a user types it: in lower case, with blanks in place of characters that join words.
fn typed(text: &str) -> String {
    text.trim().to_lowercase().replace(['-', '_'], " ")
}

impl Listing {
    /// An empty table. Columns from `numbers_from` on are aligned to the right; those before name the row,
    /// and are never left out.
    pub(crate) fn new(
        headings: impl IntoIterator<Item: Into<String>>,
        numbers_from: usize,
    ) -> Self {
        let column = |(n, heading): (usize, _)| Column {
            heading: Into::into(heading),
            name: None,
            weight: if n < numbers_from { HEAVIEST } else { USUAL },
            is_number: n >= numbers_from,
        };
        Self {
            style: presets::UTF8_FULL_CONDENSED,
            columns: headings.into_iter().enumerate().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// The table with no more than a frame, in ASCII.
    pub(crate) fn plain(self) -> Self {
        Self {
            style: presets::ASCII_BORDERS_ONLY_CONDENSED,
            ..self
        }
    }

    /// Sets the weights of the columns, from the first on.
    pub(crate) fn weigh(mut self, weights: impl IntoIterator<Item = u8>) -> Self {
        for (column, weight) in self.columns.iter_mut().zip(weights) {
            column.weight = weight;
        }
        self
    }

    /// Sets the names that records use for the last columns.
    pub(crate) fn name_last(mut self, names: &[&'static str]) -> Self {
        let first = self.columns.len().saturating_sub(names.len());
        for (column, name) in self.columns.iter_mut().skip(first).zip(names) {
            column.name = Some(name);
        }
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item: Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Keeps the columns that were asked for, in that order; all, if none was.
    ///
    /// # Errors
    /// There is no such column.
    pub(crate) fn chosen(self, wanted: &Columns) -> Result<Self, Failure> {
        if wanted.columns.is_empty() {
            return Ok(self);
        }
        let places: Result<Vec<usize>, Failure> =
            wanted.columns.iter().map(|one| self.place(one)).collect();
        Ok(self.keep(&places?))
    }

    /// The position of the column that `wanted` names: its whole heading, or else the beginning of it.
    fn place(&self, wanted: &str) -> Result<usize, Failure> {
        let text = typed(wanted);
        let is_named = |column: &Column| {
            typed(&column.heading) == text || column.name.is_some_and(|name| typed(name) == text)
        };
        let begins =
            |column: &Column| !text.is_empty() && typed(&column.heading).starts_with(&text);
        let mut columns = self.columns.iter();
        let found = columns.position(is_named);
        let found = found.or_else(|| self.columns.iter().position(begins));
        let missing = || {
            let headings: Vec<&str> = self.columns.iter().map(|c| c.heading.as_str()).collect();
            anyhow!("--columns {wanted}: there are {}", headings.join(", "))
        };
        found.ok_or_else(missing).or_exit(crate::exit::Exit::Usage)
    }

    fn keep(self, places: &[usize]) -> Self {
        let rows = self.rows.iter().map(|row| {
            let cells = places.iter();
            cells
                .map(|place| row.get(*place).cloned().unwrap_or_default())
                .collect()
        });
        let columns = places.iter().filter_map(|place| self.columns.get(*place));
        Self {
            rows: rows.collect(),
            columns: columns
                .map(|column| Column {
                    heading: column.heading.clone(),
                    ..*column
                })
                .collect(),
            style: self.style,
        }
    }

    /// The width of each column's longest word: a number or a word broken in two misleads.
    fn words(&self) -> Vec<usize> {
        let longest = |text: &String| {
            let words = text.split_whitespace();
            words.map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let headings = self.columns.iter().map(|column| longest(&column.heading));
        let mut widths: Vec<usize> = headings.collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = longest(cell).max(*width);
            }
        }
        widths
    }

    /// The columns that fit into `width`, given their longest words: the heaviest, at least one.
    fn shown(&self, words: &[usize], width: u16) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.columns.len()).collect();
        let needs = |places: &[usize]| -> usize {
            let widths = places.iter().filter_map(|place| words.get(*place));
            1 + widths.map(|word| word + AROUND).sum::<usize>()
        };
        while places.len() > 1 && needs(&places) > usize::from(width) {
            let weight = |place: &usize| self.columns.get(*place).map_or(0, |c| c.weight);
            // Of equal ones the last, which the reversed search meets first.
            let lightest = places.iter().rev().copied().min_by_key(weight);
            places.retain(|place| Some(*place) != lightest);
        }
        places
    }

    /// The table for a terminal `width` columns wide; without a terminal, as wide as its cells.
    pub(crate) fn fitted(&self, width: Option<u16>) -> String {
        let words = self.words();
        let all: Vec<usize> = (0..words.len()).collect();
        let shown = width.map_or_else(|| all.clone(), |width| self.shown(&words, width));
        let heading = |place: &usize| self.columns.get(*place).map_or("", |c| c.heading.as_str());
        let mut table = Table::new();
        table.load_style(self.style);
        table.set_header(shown.iter().map(heading));
        for row in &self.rows {
            let cells = shown.iter().map(|place| row.get(*place));
            table.add_row(cells.map(|cell| cell.map_or("", String::as_str)));
        }
        for (column, place) in table.column_iter_mut().zip(&shown) {
            if self.columns.get(*place).is_some_and(|c| c.is_number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let Some(width) = width else {
            return table.to_string();
        };
        let least = |place: &usize| words.get(*place).copied().unwrap_or(0);
        let least_width = 1 + shown.iter().map(|p| least(p) + AROUND).sum::<usize>();
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // A word longer than the terminal is wide stays whole.
        let width = usize::from(width).max(least_width);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        for (column, place) in table.column_iter_mut().zip(&shown) {
            let least = u16::try_from(least(place)).unwrap_or(u16::MAX);
            let least = Width::Fixed(least.saturating_add(PADDING));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
        let hidden: Vec<&str> = all
            .iter()
            .filter(|place| !shown.contains(place))
            .map(heading)
            .collect();
        if hidden.is_empty() {
            return table.to_string();
        }
        format!(
            "{table}\nno room on this terminal for: {}",
            hidden.join(", ")
        )
    }
}

/// The table as stdout needs it: fitted to a terminal, or not.
impl Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = Term::stdout().size_checked();
        let width = size.map(|(_, columns)| columns).filter(|width| *width > 0);
        f.write_str(&self.fitted(width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let headings = ["model", "goodput Mbit/s", "of capacity %", "overhead kB"];
        let mut listing = Listing::new(headings, 1);
        listing.row(["reliable", "4.416 ± 0.012", "88.3", "1070.9"]);
        listing.row(["nack-mack", "3.9", "78.125", "70.9"]);
        listing
    }

    fn width_of(text: &str) -> usize {
        let widths = text.lines().map(|line| line.chars().count());
        widths.max().unwrap_or_default()
    }

    #[test]
    fn without_a_terminal_each_row_is_one_line_with_every_column() {
        let text = listing().fitted(None);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert_eq!(width_of(&text), 60, "{text}");
        assert!(text.contains("4.416 ± 0.012") && text.contains("overhead kB"));
        assert_eq!(listing().fitted(Some(200)), text);
    }

    #[test]
    fn a_narrow_terminal_gets_lines_that_fit_and_no_word_in_two() {
        let natural = width_of(&listing().fitted(None));
        for width in 40..natural {
            let text = listing().fitted(u16::try_from(width).ok());
            let table = text.split("no room").next().expect("the table");
            assert!(width_of(table) <= width, "{width}:\n{text}");
            for word in [
                "reliable",
                "nack-mack",
                "4.416",
                "78.125",
                "capacity",
                "goodput",
            ] {
                assert!(table.contains(word), "{word} at {width}:\n{text}");
            }
            let is_whole = table.contains("1070.9");
            assert_eq!(
                is_whole,
                !text.contains("no room on this terminal for: overhead kB")
            );
        }
    }

    #[test]
    fn columns_that_find_no_room_are_named_and_the_first_stays() {
        let text = listing().fitted(Some(24));
        assert!(
            text.contains("nack-mack") && text.contains("goodput"),
            "{text}"
        );
        assert!(text.ends_with("no room on this terminal for: of capacity %, overhead kB"));
        let text = listing().fitted(Some(1));
        assert!(
            text.contains("nack-mack") && !text.contains("4.416"),
            "{text}"
        );
    }

    #[test]
    fn the_lightest_give_way_wherever_they_stand() {
        let weighed = || listing().weigh([HEAVIEST, 1, 3, 2]);
        for (width, hidden) in [
            (60, ""),
            (40, "goodput Mbit/s"),
            (26, "goodput Mbit/s, overhead kB"),
            (12, "goodput Mbit/s, of capacity %, overhead kB"),
        ] {
            let text = weighed().fitted(Some(width));
            let named = text.split("no room on this terminal for: ").nth(1);
            assert_eq!(named.unwrap_or_default(), hidden, "{width}:\n{text}");
        }
    }

    #[test]
    fn no_word_is_broken_though_it_is_longer_than_the_terminal_is_wide() {
        let mut listing = Listing::new(["place"], 1);
        listing.row(["/var/lib/fulmar/custody"]);
        let text = listing.fitted(Some(10));
        assert!(text.contains("/var/lib/fulmar/custody"), "{text}");
    }

    #[test]
    fn columns_are_chosen_by_their_headings_or_names() {
        let wanted = |text: &str| Columns {
            columns: text.split(',').map(str::to_owned).collect(),
        };
        let choose = |text: &str| {
            let named = listing().name_last(&["overhead_bytes"]);
            named
                .chosen(&wanted(text))
                .map(|listing| listing.fitted(None))
        };
        let text = choose("Overhead_Bytes,model").unwrap();
        assert!(!text.contains("goodput"), "{text}");
        assert!(text.find("1070.9") < text.find("reliable"), "{text}");
        assert_eq!(choose("goodput-mbit/s").unwrap(), choose("good").unwrap());
        let refused = choose("model,speed").unwrap_err();
        let said = refused.cause.to_string();
        assert!(
            said.contains("--columns speed: there are model, goodput Mbit/s"),
            "{said}"
        );
        let all = listing().chosen(&Columns::default()).unwrap();
        assert_eq!(all.fitted(None), listing().fitted(None));
    }
}
