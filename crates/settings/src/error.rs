//! The error about settings that cannot be used: the place, the field, and what would be right.

use core::fmt;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, counted from one.
    File {
        /// The file as the user named it.
        name: String,
        /// The line.
        line: usize,
    },
    /// A `--set` of the command line, as typed.
    Set(String),
    /// A default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Set(text) => write!(f, "--set {text}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The error about settings that cannot be used. Prints as one line: place, field, problem and
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_line(&format!("{origin}: {}{problem}", field_prefix(.field))))]
pub struct SettingsError {
    /// The place of the mistake.
    pub origin: Origin,
    /// The path of the field, such as `hop.ber`; empty when the text is no TOML at all.
    pub field: String,
    /// The problem, and what would be right.
    pub problem: String,
}

/// The text with control characters written out: a value that is quoted must not steer the terminal.
fn one_line(text: &str) -> String {
    let written = |c: char| {
        let escaped = c.is_control().then(|| c.escape_default());
        let kept = escaped.is_none().then_some(c);
        escaped.into_iter().flatten().chain(kept)
    };
    text.chars().flat_map(written).collect()
}

fn field_prefix(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("`{field}`: ")
    }
}

impl SettingsError {
    /// An error at `origin` about `field`.
    pub fn new(origin: Origin, field: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self {
            origin,
            field: field.into(),
            problem: problem.to_string(),
        }
    }
}

/// `; did you mean ...?` when one of `known` is near `given`, else the list of all.
pub fn suggestion<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    // With more than half of the letters wrong the hint would be noise.
    const SIMILAR_MIN: f64 = 0.5;
    let known: Vec<&str> = known.collect();
    let best = known
        .iter()
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(given, candidate),
                *candidate,
            )
        })
        .filter(|(similarity, _)| *similarity >= SIMILAR_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}
