//! Times and sizes as people say them.

use fulmar_proto::units::{ByteCount, Duration, format_duration};

/// A time in the largest unit that keeps it exact.
pub(super) fn span(time: Duration) -> String {
    for (unit, seconds) in [("h", 3_600), ("min", 60)] {
        let whole = time.as_secs();
        if time.subsec_nanos() == 0 && whole > 0 && whole.is_multiple_of(seconds) {
            return format!("{} {unit}", whole / seconds);
        }
    }
    format_duration(time)
}

/// A size in the largest unit that keeps it exact.
pub(super) fn size(amount: ByteCount) -> String {
    for (unit, octets) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if amount.0 >= octets && amount.0.is_multiple_of(octets) {
            return format!("{}{unit}", amount.0 / octets);
        }
    }
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::config::explain::explain;
    use crate::gateway::config::settings::GatewayConfig;

    #[test]
    fn times_and_sizes_are_said_as_people_say_them() {
        for (seconds, said) in [
            (86_400, "24 h"),
            (14_400, "4 h"),
            (300, "5 min"),
            (90, "90s"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), said);
        }
        assert_eq!(span(Duration::from_millis(1_500)), "1500ms");
        let text = "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\n\
                    rate = \"5mbit\"\n[egress]\nallow = [\"localhost:1-65535\"]\n";
        let config = GatewayConfig::read("a.toml", text).expect("it is sound");
        let told = explain(&config);
        for unsaid in ["86400", "14400", "65535", "300s"] {
            assert!(!told.contains(unsaid), "{unsaid} in {told}");
        }
    }
}
