//! Tables for people. A terminal gets what fits it: headings and cells break between words, and columns that still find no room
//! are left out and named. Elsewhere a table is as wide as what it says, each row on one line.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table, TableStyle, Width, presets,
};
use console::Term;
use core::fmt::{self, Display};

/// A table with its headings.
pub(crate) struct Listing {
    style: TableStyle,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// From this column on there are numbers.
    numbers_from: usize,
}

/// What stands around the text of a column: a blank on both sides, and a border.
const AROUND: usize = 3;
const PADDING: u16 = 2;

impl Listing {
    /// An empty one. Columns from `numbers_from` on are aligned to the right.
    pub(crate) fn new(
        headings: impl IntoIterator<Item: Into<String>>,
        numbers_from: usize,
    ) -> Self {
        Self {
            style: presets::UTF8_FULL_CONDENSED,
            headings: headings.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            numbers_from,
        }
    }

    /// With no more than a frame, in ASCII.
    pub(crate) fn plain(self) -> Self {
        Self {
            style: presets::ASCII_BORDERS_ONLY_CONDENSED,
            ..self
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item: Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The width of each column's longest word: a number or a word broken in two misleads.
    fn words(&self) -> Vec<usize> {
        let longest = |text: &String| {
            let words = text.split_whitespace();
            words.map(|word| word.chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = self.headings.iter().map(longest).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = longest(cell).max(*width);
            }
        }
        widths
    }

    /// How many columns, of words so wide, go into `width`.
    fn room(words: &[usize], width: u16) -> usize {
        let mut right_edge = 1;
        let fitting = words.iter().take_while(|word| {
            right_edge += *word + AROUND;
            right_edge <= usize::from(width)
        });
        fitting.count().max(1)
    }

    /// The table for a terminal `width` columns wide; for none, as wide as it is.
    fn fitted(&self, width: Option<u16>) -> String {
        let words = self.words();
        let shown = width.map_or(words.len(), |width| Self::room(&words, width));
        let mut table = Table::new();
        table.load_style(self.style);
        table.set_header(&self.headings[..shown]);
        for row in &self.rows {
            table.add_row(&row[..shown.min(row.len())]);
        }
        for column in table.column_iter_mut().skip(self.numbers_from) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let Some(width) = width else {
            return table.to_string();
        };
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
        for (column, word) in table.column_iter_mut().zip(&words) {
            let least = u16::try_from(*word).unwrap_or(u16::MAX);
            let least = Width::Fixed(least.saturating_add(PADDING));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
        match &self.headings[shown..] {
            [] => table.to_string(),
            hidden => format!(
                "{table}\nno room on this terminal for: {}",
                hidden.join(", ")
            ),
        }
    }
}

/// As stdout is: a terminal, or not.
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
        let mut listing = Listing::new(
            ["model", "goodput Mbit/s", "of capacity %", "overhead kB"],
            1,
        );
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
}
