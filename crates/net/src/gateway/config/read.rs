//! From the file to checked values.

use super::carrier::CarrierChoice;
use super::class::{self, ClassSettings, CustodyPlace, DEFAULT_CLASS};
use super::far_peer;
use super::link;
use super::meeting;
use super::notation::{Allow, Listen, Place};
use super::path;
use super::read_entries::{Names, forwards, refuse_shared_ports, socks, transparent, tunnels};
use super::settings::{
    CustodySettings, Egress, GatewayConfig, Limits, LogLevel, MTU_MAX, MTU_MIN,
    PEER_NAME_BYTES_MAX, PeerSettings, SecurityKind,
};
use crate::custody::SyncPolicy;
use crate::keeper::KeeperConfig;
use crate::recording::RecordingConfig;
use crate::session::{Introduce, PEERS_MAX, PublicKey};
use core::time::Duration;
use fulmar_proto::splice::ClassId;
use fulmar_proto::transport::aerotp::{RateSource, SHARINGS};
use fulmar_proto::units::{Bitrate, ByteCount, FecStrength};
use fulmar_settings::{Document, Keys, SettingsError, TableReader};
use std::net::SocketAddr;
use std::path::PathBuf;

type Read<T> = Result<T, SettingsError>;

pub(super) const ROOT: Keys = &[&[
    "gateway",
    "security",
    "peer",
    "class",
    "forward",
    "socks",
    "transparent",
    "tunnel",
    "link",
    "egress",
    "custody",
    "limits",
    "metrics",
    "capture",
    "trace",
]];
pub(super) const GATEWAY: Keys = &[&[
    "name",
    "listen",
    "state_dir",
    "log",
    "fec_words",
    "overhead",
]];
pub(super) const SECURITY: Keys = &[&[
    "kind",
    "private_key_file",
    "former_private_key_file",
    "preset_key_file",
]];
pub(super) const PEER: Keys = &[&[
    "name",
    "address",
    "carrier",
    "public_key",
    "rate",
    "share",
    "mtu",
    "mtu_discovery",
    "path",
    "via",
    "rendezvous",
    "introduce",
    "relay_rate",
]];
pub(super) const EGRESS: Keys = &[&["allow", "relay", "connect_timeout"]];
pub(super) const CUSTODY: Keys = &[&["limit", "directory", "fsync", "keep_connections"]];
pub(super) const LIMITS: Keys = &[&[
    "flows",
    "flows_per_client",
    "memory",
    "tcp_idle",
    "tcp_silent",
    "udp_idle",
    "outage",
]];
pub(super) const METRICS: Keys = &[&["listen"]];
pub(super) const RECORDING: Keys = &[&["file", "max_size"]];

/// Class identifiers are octets, and 0 is the default's.
// Class 255 is a row of reports that is none.
const CLASSES_MAX: usize = 254;
/// The carrier's usual port.
const LISTEN: &str = ":4914";
const MTU: ByteCount = ByteCount(1_500);
/// The usual group commit of custody on disk.
const GROUP_COMMIT: Duration = Duration::from_millis(50);
/// The least rate that may be named.
const RATE_MIN: Bitrate = Bitrate::from_bits_per_second(1_000);
const MINUTE: Duration = Duration::from_secs(60);
/// The usual patience with a silent TCP client. A mail client waits so long for its server's first word (RFC 5321,
/// section 4.5.3.2.1), and NAT keeps a connection that is being made for at least four minutes (RFC 5382, REQ-5).
const SILENT: Duration = Duration::from_secs(300);

const LEVELS: [(&str, LogLevel); 4] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
];

impl GatewayConfig {
    /// Reads a configuration. `name` is what errors call the file.
    ///
    /// # Errors
    /// The first key that is unknown, missing or out of range, with its place and the remedy.
    pub fn read(name: &str, text: &str) -> Result<Self, SettingsError> {
        let document = Document::parse(name, text)?;
        let root = TableReader::root(&document.name, &document.root, ROOT)?;
        let security = security(&root)?;
        let (near, far): (Vec<_>, Vec<_>) =
            (root.tables("peer", PEER)?.into_iter()).partition(|peer| !peer.has("via"));
        let peers = peers(&root, &near, &security)?;
        let far_peers = far_peer::read_all(&far, PEER[0], &peers)?;
        let own = root.table("gateway", GATEWAY)?;
        let own = own.as_ref();
        let overhead = super::thin::overhead(own)?;
        let classes = classes(&root, overhead)?;
        let names = Names {
            peers: &peers,
            far_peers: &far_peers,
            classes: &classes,
        };
        let forwards = forwards(&root, &names)?;
        let socks = socks(&root, &names)?;
        let transparent = transparent(&root, &names)?;
        let tunnels = tunnels(&root, &names)?;
        let links = link::links(&root, &names)?;
        let egress = egress(&root, &names)?;
        let custody = custody(&root, &classes)?;
        let limits = limits(&root)?;
        let metrics = metrics(&root)?;
        let no_entry =
            forwards.is_empty() && socks.is_empty() && transparent.is_empty() && tunnels.is_empty();
        if no_entry && has_no_exit(&egress, &peers) {
            let problem = "this gateway would carry nothing; add [[forward]], [[socks]] or \
                           [[transparent]] for clients here, [[tunnel]] for any packet, or allow = [...] in [egress] for \
                           destinations here";
            return Err(root.wrong("forward", problem));
        }
        refuse_shared_ports(&root, metrics)?;
        let [capture, trace] = recordings(&root)?;
        let listen = own
            .map(|own| own.value::<Listen>("listen"))
            .transpose()?
            .flatten();
        let default_listen = LISTEN
            .parse::<Listen>()
            .map_err(|e| root.wrong("gateway", e))?;
        let label = own.map(|own| own.text("name")).transpose()?.flatten();
        let state_dir = own.map(|own| own.text("state_dir")).transpose()?.flatten();
        let log = own
            .map(|own| own.choice("log", &LEVELS))
            .transpose()?
            .flatten();
        let words = own
            .map(|own| own.whole("fec_words", 0..=255))
            .transpose()?
            .flatten();
        let words = words.and_then(|words| u16::try_from(words).ok());
        refuse_words_of_auto(own, words, &peers)?;
        Ok(Self {
            thin: super::thin::general(overhead),
            fec_words: words
                .and_then(FecStrength::from_words)
                .unwrap_or(FecStrength::NONE),
            name: label.unwrap_or("gateway").to_owned(),
            listen: listen.unwrap_or(default_listen).0,
            state_dir: state_dir.map(PathBuf::from),
            log: log.unwrap_or(LogLevel::Info),
            security,
            peers,
            far_peers,
            classes,
            forwards,
            socks,
            transparent,
            tunnels,
            links,
            egress,
            custody,
            limits,
            metrics,
            capture,
            trace,
        })
    }
}

/// Whether nothing of a peer leaves from here: neither flows nor, as from a hub, datagrams.
fn has_no_exit(egress: &Egress, peers: &[PeerSettings]) -> bool {
    let introduces = |peer: &PeerSettings| peer.meeting.introduce != Introduce::Nothing;
    egress.allow.is_empty() && egress.relay.is_empty() && !peers.iter().any(introduces)
}

/// The address where metrics and status are served, if it is said.
fn metrics(root: &TableReader<'_>) -> Read<Option<SocketAddr>> {
    let Some(metrics) = root.table("metrics", METRICS)? else {
        return Ok(None);
    };
    let listen = metrics.required::<Listen>("listen", "\"127.0.0.1:9490\"")?;
    Ok(Some(listen.0))
}

/// Refuses a fixed number of words where the carrier, and with it the parity, is chosen.
fn refuse_words_of_auto(
    own: Option<&TableReader<'_>>,
    words: Option<u16>,
    peers: &[PeerSettings],
) -> Read<()> {
    let mut autos = peers
        .iter()
        .filter(|peer| peer.carrier == CarrierChoice::Auto);
    let (Some(own), Some(1..), Some(peer)) = (own, words, autos.next()) else {
        return Ok(());
    };
    let problem = format!(
        "is not used with carrier = \"auto\" of peer `{}`, which chooses its parity; remove it, or name the carrier",
        peer.name
    );
    Err(own.wrong("fec_words", problem))
}

fn security(root: &TableReader<'_>) -> Read<SecurityKind> {
    let Some(reader) = root.table("security", SECURITY)? else {
        let problem = "is missing; write [security] with kind = \"noise\" and private_key_file = \
                       \"...\" (make a key with `fulmar keygen`), or kind = \"none\" in a lab";
        return Err(root.wrong("security", problem));
    };
    let kinds = [("noise", 0_u8), ("preset", 1), ("none", 2)];
    let kind = reader.choice("kind", &kinds)?;
    let file = |key| Ok::<_, SettingsError>(reader.text(key)?.map(PathBuf::from));
    let needs = |key, kind: &str| {
        let problem = format!("is missing, and kind = \"{kind}\" needs it; write {key} = \"FILE\"");
        reader.wrong(key, problem)
    };
    match kind {
        None => Err(reader.wrong("kind", "is missing; write kind = \"noise\"")),
        Some(0) => Ok(SecurityKind::Noise {
            private_key_file: file("private_key_file")?
                .ok_or_else(|| needs("private_key_file", "noise"))?,
            former_private_key_file: file("former_private_key_file")?,
            preset_key_file: file("preset_key_file")?,
        }),
        Some(1) if reader.has("former_private_key_file") => {
            let problem = "is not used with kind = \"preset\"; remove it";
            Err(reader.wrong("former_private_key_file", problem))
        }
        Some(1) => Ok(SecurityKind::Preset {
            preset_key_file: file("preset_key_file")?
                .ok_or_else(|| needs("preset_key_file", "preset"))?,
        }),
        Some(_) => match SECURITY
            .iter()
            .flat_map(|keys| keys.iter().copied())
            .filter(|key| *key != "kind")
            .find(|key| reader.has(key))
        {
            Some(key) => {
                let problem = "is not used with kind = \"none\"; remove it, or write kind = \
                               \"noise\"";
                Err(reader.wrong(key, problem))
            }
            None => Ok(SecurityKind::None),
        },
    }
}

fn peers(
    root: &TableReader<'_>,
    tables: &[TableReader<'_>],
    security: &SecurityKind,
) -> Read<Vec<PeerSettings>> {
    if tables.is_empty() || tables.len() > PEERS_MAX {
        let problem = format!("there must be 1 to {PEERS_MAX}; write [[peer]] with a name");
        return Err(root.wrong("peer", problem));
    }
    let mut peers: Vec<PeerSettings> = Vec::new();
    for reader in tables {
        let peer = peer(reader, security)?;
        if peers.iter().any(|other| other.name == peer.name) {
            let problem = format!("`{}` is another peer's; give each its own", peer.name);
            return Err(reader.wrong("name", problem));
        }
        let same = |other: &&PeerSettings| {
            let mut keys = peer.public_keys();
            keys.any(|key| other.public_keys().any(|others| others == key))
        };
        if let Some(other) = peers.iter().find(same) {
            let problem = format!("is that of peer `{}` too; give each its own", other.name);
            return Err(reader.wrong("public_key", problem));
        }
        peers.push(peer);
    }
    meeting::check(tables, &peers)?;
    if peers.len() > 1 && matches!(security, SecurityKind::Preset { .. }) {
        let problem = "one preset key serves one peer; write kind = \"noise\" for several";
        return Err(root.wrong("security", problem));
    }
    Ok(peers)
}

fn peer(reader: &TableReader<'_>, security: &SecurityKind) -> Read<PeerSettings> {
    let name: String = reader.required("name", "\"aircraft\"")?;
    if name.is_empty() {
        return Err(reader.wrong("name", "must not be empty; write name = \"aircraft\""));
    }
    if name.len() > PEER_NAME_BYTES_MAX {
        let problem = format!("is longer than {PEER_NAME_BYTES_MAX} octets; write a shorter one");
        return Err(reader.wrong("name", problem));
    }
    let rate = reader.value::<Bitrate>("rate")?;
    if let Some(rate) = rate.filter(|rate| *rate < RATE_MIN) {
        let problem = format!("is {rate}; write at least 1kbit/s, or leave it out: it is found");
        return Err(reader.wrong("rate", problem));
    }
    let rate = RateSource::of(rate, reader.choice("share", &SHARINGS)?);
    let mtu = reader.value_or("mtu", MTU)?;
    if !(MTU_MIN..=MTU_MAX).contains(&mtu) {
        let problem = format!("is {mtu}; write {MTU_MIN} to {MTU_MAX}");
        return Err(reader.wrong("mtu", problem));
    }
    let keys = reader.list("public_key", str::parse::<PublicKey>)?;
    let keys: Vec<String> = keys.iter().flatten().map(ToString::to_string).collect();
    let (public_key, other_public_key) = match &keys[..] {
        [] => (None, None),
        [key] => (Some(key.clone()), None),
        [key, other] if key != other => (Some(key.clone()), Some(other.clone())),
        _ => {
            let problem = "must be one key, or two different ones while the peer changes its key";
            return Err(reader.wrong("public_key", problem));
        }
    };
    let noise = matches!(security, SecurityKind::Noise { .. });
    if noise && public_key.is_none() {
        let problem = "is missing, and kind = \"noise\" needs it; write what `fulmar keygen` \
                       printed at the other end";
        return Err(reader.wrong("public_key", problem));
    }
    if !noise && public_key.is_some() {
        let problem = format!(
            "is not used with kind = \"{}\"; remove it, or write kind = \"noise\"",
            security.name()
        );
        return Err(reader.wrong("public_key", problem));
    }
    let carrier = reader.value_or("carrier", CarrierChoice::Udp)?;
    if matches!(carrier, CarrierChoice::Ethernet(_)) && reader.has("address") {
        let problem = format!(
            "is not used with carrier = \"{carrier}\", whose frames find the peer; remove it"
        );
        return Err(reader.wrong("address", problem));
    }
    let place = reader.wrong("public_key", "");
    let address = reader.value::<Place>("address")?.map(|place| place.0);
    let paths = path::read_all(reader, address.as_ref())?;
    if let (true, CarrierChoice::Ethernet(_)) = (!paths.is_empty(), &carrier) {
        let problem = format!("is not used with carrier = \"{carrier}\"; remove it");
        return Err(reader.wrong("path", problem));
    }
    let meeting = meeting::read(reader, security, &carrier)?;
    Ok(PeerSettings {
        paths,
        meeting,
        carrier,
        key_place: format!("{}: `{}`", place.origin, place.field),
        name,
        address,
        public_key,
        other_public_key,
        rate,
        mtu,
        mtu_discovery: reader.value_or("mtu_discovery", true)?,
        is_removed: false,
    })
}

fn classes(root: &TableReader<'_>, overhead: Option<u8>) -> Read<Vec<ClassSettings>> {
    let tables = root.named_tables("class", &[class::KEYS])?;
    if tables.len() > CLASSES_MAX {
        let problem = format!("there may be {CLASSES_MAX} at most");
        return Err(root.wrong("class", problem));
    }
    let mut classes = vec![class::built_in()];
    for (name, reader) in &tables {
        if *name == DEFAULT_CLASS {
            classes[0] = class::read(name, ClassId(0), reader, overhead)?;
        } else {
            let id = u8::try_from(classes.len()).unwrap_or(u8::MAX);
            classes.push(class::read(name, ClassId(id), reader, overhead)?);
        }
    }
    Ok(classes)
}

fn egress(root: &TableReader<'_>, names: &Names<'_>) -> Read<Egress> {
    const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    let mut egress = Egress {
        allow: Vec::new(),
        relay: Vec::new(),
        connect_timeout: CONNECT_TIMEOUT,
    };
    if let Some(reader) = root.table("egress", EGRESS)? {
        egress.allow = reader
            .list("allow", str::parse::<Allow>)?
            .unwrap_or_default();
        egress.relay = relay(&reader, names)?;
        egress.connect_timeout = within(
            &reader,
            "connect_timeout",
            CONNECT_TIMEOUT,
            Duration::from_millis(100)..=MINUTE * 2,
        )?;
    }
    Ok(egress)
}

/// The peers to which flows of others are carried on.
fn relay(reader: &TableReader<'_>, names: &Names<'_>) -> Read<Vec<String>> {
    let given = reader
        .list("relay", str::parse::<String>)?
        .unwrap_or_default();
    for name in &given {
        let near = names.peers.iter().map(|peer| &peer.name);
        let mut known = near.chain(names.far_peers.iter().map(|peer| &peer.name));
        if !known.any(|peer| peer == name) {
            let problem =
                format!("names `{name}`, which is no [[peer]] here; write the name of one");
            return Err(reader.wrong("relay", problem));
        }
    }
    Ok(given)
}

fn custody(root: &TableReader<'_>, classes: &[ClassSettings]) -> Read<CustodySettings> {
    let mut settings = CustodySettings {
        limit: ByteCount(256 << 20),
        directory: None,
        sync: SyncPolicy::Every(GROUP_COMMIT),
        keep_for: Some(KeeperConfig::default().keep_for),
    };
    if let Some(reader) = root.table("custody", CUSTODY)? {
        settings.limit = reader.value_or("limit", settings.limit)?;
        if settings.limit < ByteCount(1 << 20) {
            let problem = format!("is {}; write at least 1MiB", settings.limit);
            return Err(reader.wrong("limit", problem));
        }
        settings.directory = reader.text("directory")?.map(PathBuf::from);
        settings.sync = match reader.text("fsync")? {
            None => settings.sync,
            Some("always") => SyncPolicy::Always,
            Some("never") => SyncPolicy::Never,
            Some(_) => {
                let range = Duration::from_millis(1)..=MINUTE;
                SyncPolicy::Every(within(&reader, "fsync", GROUP_COMMIT, range)?)
            }
        };
        settings.keep_for = match reader.text("keep_connections")? {
            None => settings.keep_for,
            Some("none") => None,
            Some(_) => {
                let range = Duration::from_secs(1)..=MINUTE * 60;
                Some(within(&reader, "keep_connections", MINUTE, range)?)
            }
        };
    }
    if settings.directory.is_some() {
        return Ok(settings);
    }
    for (name, reader) in &root.named_tables("class", &[class::KEYS])? {
        let is_it = |class: &&ClassSettings| class.name == *name;
        let class = classes.iter().find(is_it);
        if class.is_some_and(|class| class.custody == CustodyPlace::Disk) {
            let problem = "on disk needs a place: write [custody] directory = \
                           \"/var/lib/fulmar/custody\", or write custody = \"memory\" here";
            return Err(reader.wrong("custody", problem));
        }
    }
    Ok(settings)
}

/// The usual largest size of a capture, and of a trace.
pub const RECORDING_MAX: ByteCount = ByteCount(1_000_000_000);
/// The smallest limit of a recording: it holds at least some packets or events.
const RECORDING_MIN: ByteCount = ByteCount(1_000_000);

/// `[capture]` or `[trace]`, whose file is called `example` in its remedy.
fn recording(
    root: &TableReader<'_>,
    key: &'static str,
    example: &str,
) -> Read<Option<RecordingConfig>> {
    let Some(reader) = root.table(key, RECORDING)? else {
        return Ok(None);
    };
    let Some(file) = reader.text("file")? else {
        let problem = format!("is missing; write file = \"/var/lib/fulmar/{example}\"");
        return Err(reader.wrong("file", problem));
    };
    let max_size = reader.value_or("max_size", RECORDING_MAX)?;
    if max_size < RECORDING_MIN {
        let problem = format!("is {max_size}; write at least 1MB");
        return Err(reader.wrong("max_size", problem));
    }
    Ok(Some(RecordingConfig {
        file: PathBuf::from(file),
        max_size,
        is_required: false,
    }))
}

/// The files in which packets and events are recorded.
fn recordings(root: &TableReader<'_>) -> Read<[Option<RecordingConfig>; 2]> {
    let capture = recording(root, "capture", "gateway.pcapng")?;
    let trace = recording(root, "trace", "gateway.jsonl")?;
    if let (Some(capture), Some(trace)) = (&capture, &trace)
        && capture.file == trace.file
    {
        let problem = "is the file of [capture]; name another, such as \"gateway.jsonl\"";
        let reader = root.table("trace", RECORDING)?;
        return Err(reader.map_or_else(
            || root.wrong("trace", problem),
            |reader| reader.wrong("file", problem),
        ));
    }
    Ok([capture, trace])
}

fn limits(root: &TableReader<'_>) -> Read<Limits> {
    let mut limits = Limits {
        flows: 4_096,
        flows_per_client: None,
        memory: ByteCount(512 << 20),
        tcp_idle: MINUTE * 60 * 24,
        tcp_silent: SILENT,
        udp_idle: MINUTE * 2,
        outage: MINUTE * 60 * 4,
    };
    let Some(reader) = root.table("limits", LIMITS)? else {
        return Ok(limits);
    };
    if let Some(flows) = reader.whole("flows", 1..=60_000)? {
        limits.flows = usize::try_from(flows).unwrap_or(usize::MAX);
    }
    limits.flows_per_client = reader
        .whole("flows_per_client", 1..=60_000)?
        .map(|flows| usize::try_from(flows).unwrap_or(usize::MAX));
    limits.memory = reader.value_or("memory", limits.memory)?;
    if limits.memory < ByteCount(16 << 20) {
        let problem = format!("is {}; write at least 16MiB", limits.memory);
        return Err(reader.wrong("memory", problem));
    }
    let week = MINUTE * 60 * 24 * 7;
    let second = Duration::from_secs(1);
    limits.tcp_idle = within(&reader, "tcp_idle", limits.tcp_idle, second..=week)?;
    limits.tcp_silent = within(&reader, "tcp_silent", limits.tcp_silent, second..=week)?;
    limits.udp_idle = within(&reader, "udp_idle", limits.udp_idle, second..=week)?;
    limits.outage = within(&reader, "outage", limits.outage, second..=week)?;
    Ok(limits)
}

fn within(
    reader: &TableReader<'_>,
    key: &'static str,
    default: Duration,
    bounds: core::ops::RangeInclusive<Duration>,
) -> Read<Duration> {
    let span = reader.duration(key)?.unwrap_or(default);
    if bounds.contains(&span) {
        return Ok(span);
    }
    let (low, high) = (bounds.start(), bounds.end());
    let problem = format!(
        "is {}; write {} to {}",
        fulmar_proto::units::format_duration(span),
        fulmar_proto::units::format_duration(*low),
        fulmar_proto::units::format_duration(*high)
    );
    Err(reader.wrong(key, problem))
}
