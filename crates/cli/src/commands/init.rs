//! `fulmar init`: the files of two gateways, with their keys.

use super::address::with_port;
use super::secure::failure;
use crate::exit::{Exit, Failure, OrExit};
use crate::output;
use anyhow::{Context, anyhow};
use fulmar_net::GatewayConfig;
use fulmar_net::gateway::config::Place;
use fulmar_net::session::{Entropy, SecretKey, write_secret_key};
use fulmar_net::tun::InterfaceAddress;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  fulmar init --called 203.0.113.10
      writes ground/ and air/: a tunnel for any packet between two machines, of which the second calls the first
  fulmar init --called 203.0.113.10 --behind-called 10.20.0.0/16
      also reaches the network behind the first machine
  fulmar init --called 203.0.113.10 --proxy
      without root: a SOCKS5 proxy at the second machine, for browsers, ssh and curl

docs/guide/gateway.md says what the files mean.
";

/// The UDP port of gateways.
const PORT: u16 = 4914;
/// Where the page is, and what `fulmar top` watches.
const PAGE: &str = "127.0.0.1:9490";
/// Where the proxy listens.
const PROXY: &str = "127.0.0.1:1080";
/// The file of a gateway in its folder.
const FILE: &str = "fulmar.toml";

/// The arguments of `fulmar init`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The folder that gets a folder for each end.
    #[arg(value_name = "DIR", default_value = ".")]
    place: PathBuf,
    /// The address at which the second machine reaches the first; asked for where a person looks. UDP port 4914 unless it names one.
    #[arg(long, value_name = "HOST[:PORT]")]
    called: Option<String>,
    /// The names of the first end, which is called, and of the second.
    #[arg(
        long,
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = "ground,air"
    )]
    names: Vec<String>,
    /// The network of the tunnel; its first two addresses are the ends.
    #[arg(
        long,
        value_name = "NET",
        default_value = "10.90.0.0/24",
        conflicts_with = "proxy"
    )]
    network: InterfaceAddress,
    /// A network behind the first machine that the tunnel reaches; may be given several times.
    #[arg(long, value_name = "NET", conflicts_with = "proxy")]
    behind_called: Vec<InterfaceAddress>,
    /// A network behind the second machine that the tunnel reaches; may be given several times.
    #[arg(long, value_name = "NET", conflicts_with = "proxy")]
    behind_caller: Vec<InterfaceAddress>,
    /// A SOCKS5 proxy at the second machine instead of a tunnel: needs no root, carries TCP and UDP of programs that ask for it.
    #[arg(long)]
    proxy: bool,
    /// A network or host with its ports that the proxy may reach from the first machine; may be given several times. Without it: all but
    /// that machine itself.
    #[arg(long, value_name = "ADDR:PORTS", requires = "proxy")]
    allow: Vec<String>,
}

/// One end: its folder, its key, and what its file has besides.
struct GatewayEnd<'a> {
    name: &'a str,
    folder: PathBuf,
    key: SecretKey,
    /// Where it is reached; the end that calls needs none.
    address: Option<String>,
    /// The line of what it carries.
    carries: String,
}

/// Writes two gateways' files.
///
/// # Errors
/// A name or a network cannot be; a file is there already, or cannot be written.
pub(crate) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let wrong = |cause| Failure {
        exit: Exit::Usage,
        cause,
    };
    let [first, second] = args.names.as_slice() else {
        return Err(wrong(anyhow!("--names: write two, such as ground,air")));
    };
    for name in [first, second] {
        let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(sound) {
            let problem = "a name has letters, digits, - and _, at most 64 of them";
            return Err(wrong(anyhow!("--names {name}: {problem}")));
        }
    }
    if first == second {
        return Err(wrong(anyhow!("--names: both ends are called {first}")));
    }
    let called = match &args.called {
        Some(called) => called.clone(),
        None => ask(first, second).map_err(wrong)?,
    };
    let called = with_port(called.trim(), PORT);
    called.parse::<Place>().map_err(|error| {
        wrong(anyhow!(
            "--called: {error}; write an address or a name, such as 203.0.113.10"
        ))
    })?;
    let (here, there) = carried(args).map_err(wrong)?;
    let mut entropy = Entropy::from_system()
        .context("asking the kernel for random numbers")
        .or_exit(Exit::Device)?;
    let mut end = |name, address, carries| GatewayEnd {
        name,
        folder: args.place.join(name),
        key: SecretKey::generate(&mut entropy),
        address,
        carries,
    };
    let first = end(first, Some(called), here);
    let second = end(second, None, there);
    let ends = [(&first, &second), (&second, &first)];
    for (end, other) in ends {
        refuse_old(end)?;
        // What a gateway would refuse is refused before anything is written.
        GatewayConfig::read("fulmar init", &text(end, other))
            .map_err(|error| wrong(error.into()))?;
    }
    for (end, other) in ends {
        write(end, other)?;
    }
    advise(&first, &second, args);
    Ok(Exit::Done)
}

/// Asks for the address, where a person can answer.
fn ask(first: &str, second: &str) -> anyhow::Result<String> {
    let missing = || {
        anyhow!(
            "--called is missing: the address at which `{second}` reaches `{first}`, such as 203.0.113.10"
        )
    };
    if !io::stdin().is_terminal() {
        return Err(missing());
    }
    eprint!("The address at which `{second}` reaches `{first}` (host, or host:port): ");
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    if line.trim().is_empty() {
        return Err(missing());
    }
    Ok(line)
}

/// The lines of what both ends carry.
fn carried(args: &InitArgs) -> anyhow::Result<(String, String)> {
    if args.proxy {
        let allow = if args.allow.is_empty() {
            vec!["0.0.0.0/0:1-65535".to_owned(), "[::/0]:1-65535".to_owned()]
        } else {
            args.allow.clone()
        };
        let allow = listed(allow.iter());
        return Ok((
            format!("egress = {{ allow = {allow} }}"),
            format!("socks = [{{ listen = \"{PROXY}\" }}]"),
        ));
    }
    let (Some(here), Some(there)) = (host(args.network, 1), host(args.network, 2)) else {
        return Err(anyhow!(
            "--network {}: has no room for two ends",
            args.network
        ));
    };
    let line = |address, behind: &[InterfaceAddress]| {
        let routes = if behind.is_empty() {
            String::new()
        } else {
            format!(", routes = {}", listed(behind.iter()))
        };
        format!("tunnel = [{{ address = \"{address}\"{routes} }}]")
    };
    Ok((
        line(here, &args.behind_caller),
        line(there, &args.behind_called),
    ))
}

/// The host of this number in a network.
fn host(network: InterfaceAddress, number: u8) -> Option<InterfaceAddress> {
    let ip = match network.network().ip() {
        IpAddr::V4(ip) => IpAddr::V4(ip.to_bits().checked_add(number.into())?.into()),
        IpAddr::V6(ip) => IpAddr::V6(ip.to_bits().checked_add(number.into())?.into()),
    };
    network.with_host(ip)
}

fn listed(values: impl Iterator<Item = impl ToString>) -> String {
    let quoted: Vec<String> = values
        .map(|value| format!("{:?}", value.to_string()))
        .collect();
    format!("[{}]", quoted.join(", "))
}

/// Refuses to write over what a gateway of this name has: its peer knows that key.
fn refuse_old(end: &GatewayEnd<'_>) -> Result<(), Failure> {
    for name in [FILE.to_owned(), format!("{}.key", end.name)] {
        let file = end.folder.join(name);
        if file.exists() {
            return Err(Failure {
                exit: Exit::Usage,
                cause: anyhow!(
                    "{}: exists already; name another DIR, or remove it",
                    file.display()
                ),
            });
        }
    }
    Ok(())
}

fn write(end: &GatewayEnd<'_>, other: &GatewayEnd<'_>) -> Result<(), Failure> {
    let attempt = |path: &Path| format!("writing {}", path.display());
    fs::create_dir_all(&end.folder)
        .with_context(|| attempt(&end.folder))
        .or_exit(Exit::Device)?;
    let key = end.folder.join(format!("{}.key", end.name));
    write_secret_key(&key, &end.key).map_err(failure)?;
    let file = end.folder.join(FILE);
    fs::write(&file, text(end, other))
        .with_context(|| attempt(&file))
        .or_exit(Exit::Device)?;
    output::line(&file.display().to_string())?;
    output::line(&key.display().to_string())
}

/// The file of an end: what it is called, its key, its peer, and what it carries.
fn text(end: &GatewayEnd<'_>, other: &GatewayEnd<'_>) -> String {
    let name = end.name;
    let address = other
        .address
        .as_ref()
        .map_or_else(String::new, |address| format!(", address = {address:?}"));
    format!(
        "gateway = {{ name = \"{name}\" }}\n\
         security = {{ kind = \"noise\", private_key_file = \"{name}.key\" }}\n\
         peer = [{{ name = \"{}\"{address}, public_key = \"{}\" }}]\n\
         {}\n\
         metrics = {{ listen = \"{PAGE}\" }}\n",
        other.name,
        other.key.public(),
        end.carries
    )
}

/// Says what comes next.
fn advise(first: &GatewayEnd<'_>, second: &GatewayEnd<'_>, args: &InitArgs) {
    let command = if args.proxy {
        format!("fulmar gateway -c {FILE}")
    } else {
        let program = std::env::current_exe();
        format!("{} up {FILE}", as_root(program.ok().as_deref()))
    };
    let address = first.address.as_deref().unwrap_or_default();
    let port = address.rsplit_once(':').map_or("", |(_, port)| port);
    eprintln!("fulmar: take each folder to its machine; whoever has a key file can be that end");
    for end in [first, second] {
        eprintln!(
            "  {:<16} cd {} && {command}",
            end.name,
            end.folder.display()
        );
    }
    let proof = if args.proxy {
        format!(
            "at {}: curl --socks5-hostname {PROXY} https://…",
            second.name
        )
    } else {
        let here = host(args.network, 1).map_or_else(String::new, |host| host.ip().to_string());
        format!("at {}: ping {here}", second.name)
    };
    eprintln!(
        "UDP port {port} must be open at {address}. Then, {proof}; http://{PAGE}/ shows the link at either end"
    );
    if args.proxy && args.allow.is_empty() {
        eprintln!(
            "the proxy reaches all but {0} itself: to reach a server there, add its address and port to allow in the file of {0}",
            first.name
        );
    }
    for (end, behind) in [(first, &args.behind_called), (second, &args.behind_caller)] {
        if let Some(advice) = forwarding(end.name, behind, args.network.network()) {
            eprintln!("{advice}");
        }
    }
}

/// The directories in which sudo looks for programs, whatever PATH says (`secure_path` of the usual sudoers files).
const OF_SUDO: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// This program as root, as a shell's user types it: sudo does not find what was built here and put on PATH.
fn as_root(program: Option<&Path>) -> &'static str {
    let directory = program.and_then(Path::parent);
    if directory.is_some_and(|directory| OF_SUDO.iter().any(|one| directory == Path::new(one))) {
        "sudo fulmar"
    } else {
        "sudo \"$(command -v fulmar)\""
    }
}

/// The needs of an end besides, if the tunnel reaches networks behind it: a kernel that forwards, and a way back.
fn forwarding(end: &str, behind: &[InterfaceAddress], tunnel: InterfaceAddress) -> Option<String> {
    let has = |is_of: fn(&IpAddr) -> bool| behind.iter().any(|network| is_of(&network.ip()));
    let switches = [
        (has(IpAddr::is_ipv4), "net.ipv4.ip_forward=1"),
        (has(IpAddr::is_ipv6), "net.ipv6.conf.all.forwarding=1"),
    ];
    let needed: Vec<&str> = (switches.into_iter())
        .filter_map(|(is_needed, switch)| is_needed.then_some(switch))
        .collect();
    (!needed.is_empty()).then(|| {
        format!(
            "at {end}: sudo sysctl -w {}; and the hosts behind it need a way back: a route to {tunnel} by {end}",
            needed.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_is_told_where_the_program_is_unless_it_looks_there() {
        let told = |program: &str| as_root(Some(Path::new(program)));
        assert_eq!(told("/usr/bin/fulmar"), "sudo fulmar");
        assert_eq!(told("/usr/local/bin/fulmar"), "sudo fulmar");
        let built = "sudo \"$(command -v fulmar)\"";
        assert_eq!(told("/home/a/fulmar/target/release/fulmar"), built);
        assert_eq!(as_root(None), built);
    }
}
