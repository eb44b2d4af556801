//! Two ends that send each other lines of text over one stream.
//!
//!     chat key                                      a new key: the secret one, and the public one for the other end
//!     chat listen ADDRESS SECRET PEER'S-PUBLIC-KEY
//!     chat call ADDRESS SECRET PEER'S-PUBLIC-KEY

use fulmar::{Config, Endpoint, PublicKey, SecretKey, Stream};
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};

/// Sends the lines of `input` while it writes those of the other end to `output`, until both have ended.
pub(crate) fn talk(
    stream: &Stream,
    input: impl BufRead + Send,
    mut output: impl Write,
) -> io::Result<()> {
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            for line in input.lines() {
                writeln!(&mut &*stream, "{}", line?)?;
            }
            stream.finish()
        });
        for line in BufReader::new(stream).lines() {
            writeln!(output, "{}", line?)?;
        }
        sending.join().map_err(|_| io::ErrorKind::Other)?
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let stream = match words[..] {
        ["key"] => {
            let key = fulmar::new_secret_key()?;
            println!("secret {}\npublic {}", key.to_text(), key.public());
            return Ok(());
        }
        ["listen", address, own, peer] => {
            let config = Config::new(own.parse::<SecretKey>()?).peer(peer.parse()?);
            let endpoint = Endpoint::bind(address, config)?;
            let stream = endpoint.listen()?.accept(None)?;
            return Ok(talk(&stream, BufReader::new(io::stdin()), io::stdout())?);
        }
        ["call", address, own, peer] => {
            let endpoint = Endpoint::bind("0.0.0.0:0", Config::new(own.parse()?))?;
            let stream = endpoint.connect(address, &peer.parse::<PublicKey>()?)?;
            talk(&stream, BufReader::new(io::stdin()), io::stdout())
        }
        _ => {
            return Err(
                "usage: chat key | listen ADDRESS SECRET PEER | call ADDRESS SECRET PEER".into(),
            );
        }
    };
    Ok(stream?)
}
