//! A configuration said back in words, so that a slip shows before traffic does.

mod classes;
mod egress;
mod entries;
mod limits;
mod peers;
mod quantities;

use super::settings::{GatewayConfig, SecurityKind};
use classes::describe_class;
use core::fmt::Write;

/// The whole configuration, a line for each thing it does.
pub fn explain(config: &GatewayConfig) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_all(config, &mut text);
    text
}

fn write_all(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    writeln!(
        out,
        "gateway `{}` sends to its peers, and hears them, at UDP address {}",
        config.name, config.listen
    )?;
    security(config, out)?;
    peers::peers(config, out)?;
    for class in &config.classes {
        writeln!(
            out,
            "class `{}`: {}",
            class.name,
            describe_class(class, &config.peers)
        )?;
    }
    entries::entries(config, out)?;
    egress::egress(config, out)?;
    limits::limits(config, out)
}

fn security(config: &GatewayConfig, out: &mut String) -> core::fmt::Result {
    match &config.security {
        SecurityKind::Noise {
            private_key_file,
            former_private_key_file,
            preset_key_file,
        } => {
            let former = match former_private_key_file {
                Some(file) => format!(
                    ", the one before, which is still taken, in {}",
                    file.display()
                ),
                None => String::new(),
            };
            let preset = match preset_key_file {
                Some(file) => format!(" and the preset key in {}", file.display()),
                None => String::new(),
            };
            writeln!(
                out,
                "datagrams are encrypted; our key is in {}{former}{preset}",
                private_key_file.display()
            )
        }
        SecurityKind::Preset { preset_key_file } => writeln!(
            out,
            "datagrams are encrypted under the preset key in {}",
            preset_key_file.display()
        ),
        SecurityKind::None => writeln!(
            out,
            "NOTHING IS PROTECTED: whoever reaches the port can read, change and inject traffic"
        ),
    }
}
