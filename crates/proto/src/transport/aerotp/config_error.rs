//! The error about settings.

/// The error about a configuration that cannot work: the field, and the values it allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct ConfigError {
    /// The field of [`ConnectionConfig`](super::ConnectionConfig) or [`DeliveryGoal`](crate::repair::DeliveryGoal), with a path
    /// such as `ack.every`.
    pub field: &'static str,
    /// The problem, and what would be right. Other fields stand in backquotes, so that who reads settings can name them
    /// as its users know them.
    pub problem: String,
}
