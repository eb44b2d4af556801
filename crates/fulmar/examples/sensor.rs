//! A sensor whose readings are worth something for a second, and somebody who collects them.
//!
//!     sensor collect ADDRESS SECRET PEER'S-PUBLIC-KEY
//!     sensor measure ADDRESS SECRET PEER'S-PUBLIC-KEY
//!
//! Keys come from `cargo run -p fulmar --example chat key`.

use fulmar::{Config, Endpoint, Messages, Priority, PublicKey, SecretKey};
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

/// The time for which a reading is worth something.
const DEADLINE: Duration = Duration::from_secs(1);
const USUAL: Priority = Priority(0);
/// An alarm overtakes readings that wait.
const ALARM: Priority = Priority(9);

/// Sends each reading, and an alarm besides for those above 100, with a pause behind each.
#[expect(
    clippy::disallowed_methods,
    reason = "a sensor measures from time to time"
)]
pub(crate) fn measure(
    messages: &Messages,
    readings: impl Iterator<Item = u32>,
    pause: Duration,
) -> io::Result<()> {
    for reading in readings {
        if reading > 100 {
            messages.send(format!("alarm {reading}").as_bytes(), DEADLINE, ALARM)?;
        }
        messages.send(format!("reading {reading}").as_bytes(), DEADLINE, USUAL)?;
        std::thread::sleep(pause);
    }
    messages.finish()
}

/// Writes what comes in time, a line each, until the sensor has finished.
pub(crate) fn collect(messages: &Messages, mut output: impl Write) -> io::Result<()> {
    while let Some(message) = messages.receive(None)? {
        writeln!(output, "{}", String::from_utf8_lossy(&message))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["collect", address, own, peer] => {
            let config = Config::new(own.parse::<SecretKey>()?).peer(peer.parse()?);
            let endpoint = Endpoint::bind(address, config)?;
            let messages = endpoint.listen()?.accept_messages(None)?;
            Ok(collect(&messages, io::stdout())?)
        }
        ["measure", address, own, peer] => {
            let endpoint = Endpoint::bind("0.0.0.0:0", Config::new(own.parse()?))?;
            let messages = endpoint.messages(address, &peer.parse::<PublicKey>()?)?;
            // It warms up, and is too hot in the end.
            Ok(measure(
                &messages,
                (91..=102).step_by(1),
                Duration::from_millis(100),
            )?)
        }
        _ => Err("usage: sensor collect ADDRESS SECRET PEER | measure ADDRESS SECRET PEER".into()),
    }
}
