//! `[[link]]`: a link that tells of itself.

use super::notation::{NotationError, not};
use super::path::Device;
use super::read_entries::Names;
use super::settings::{LinkSource, PeerSettings, ToldLinkSettings};
use core::time::Duration;
use fulmar_proto::told::VALID_FOR;
use fulmar_settings::{Keys, SettingsError, TableReader};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const KEYS: Keys = &[
    &[
        "name",
        "peer",
        "path",
        "valid_for",
        "destination",
        "station",
    ],
    &SOURCES,
];
/// The sources of a link's words, of which it has one.
const SOURCES: [&str; 4] = ["socket", "schedule", "dlep", "device"];
/// The most links: each may have a few descriptors.
const LINKS_MAX: usize = 64;
/// The longest name, which is kept with each figure.
const NAME_BYTES_MAX: usize = 64;
/// The longest path of a Unix socket (unix(7): `sun_path` less the octet that ends it).
const SOCKET_BYTES_MAX: usize = 107;
const VALID_MIN: Duration = Duration::from_secs(1);

/// A link's name: it is a label of metrics.
struct LinkName(String);

impl FromStr for LinkName {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
            .ok_or_else(|| not(text, "the name of a link; write up to 64 letters, figures and signs without spaces, as \"satellite\""))
    }
}

pub(super) fn links(
    root: &TableReader<'_>,
    names: &Names<'_>,
) -> Result<Vec<ToldLinkSettings>, SettingsError> {
    let tables = root.tables("link", KEYS)?;
    if tables.len() > LINKS_MAX {
        return Err(root.wrong("link", format!("there may be {LINKS_MAX}")));
    }
    let mut links: Vec<ToldLinkSettings> = Vec::new();
    for table in &tables {
        let link = read(table, names)?;
        if links.iter().any(|other| other.name == link.name) {
            let problem = format!("`{}` is another link's; give each its own", link.name);
            return Err(table.wrong("name", problem));
        }
        if let Some(other) = links
            .iter()
            .find(|other| (other.peer, other.path) == (link.peer, link.path))
        {
            let problem = format!(
                "is served by link `{}` too; a path has one link",
                other.name
            );
            return Err(table.wrong("path", problem));
        }
        if links.iter().any(|other| other.source == link.source) {
            let problem = "is that of another link too; give each its own";
            return Err(table.wrong(link.source.name(), problem));
        }
        links.push(link);
    }
    Ok(links)
}

fn read(reader: &TableReader<'_>, names: &Names<'_>) -> Result<ToldLinkSettings, SettingsError> {
    let peer = names.peer(
        reader,
        "a link is below the path to the next; name the next one",
    )?;
    let paths = names
        .peers
        .get(peer)
        .map_or(0, |peer: &PeerSettings| peer.paths.len());
    let path = reader.whole("path", 0..=u64::try_from(paths).unwrap_or(0))?;
    let valid_for = reader.duration("valid_for")?.unwrap_or(VALID_FOR);
    if valid_for < VALID_MIN {
        return Err(reader.wrong("valid_for", "is too short: write at least 1s"));
    }
    Ok(ToldLinkSettings {
        name: reader.required::<LinkName>("name", "\"satellite\"")?.0,
        peer,
        path: path
            .and_then(|path| usize::try_from(path).ok())
            .unwrap_or(0),
        source: source(reader)?,
        valid_for,
    })
}

fn source(reader: &TableReader<'_>) -> Result<LinkSource, SettingsError> {
    let mut named = SOURCES.into_iter().filter(|key| reader.has(key));
    let Some(key) = named.next() else {
        let problem = "is missing, and so are `schedule`, `dlep` and `device`: nobody would tell of this link; write socket = \"/run/fulmar/link.sock\"";
        return Err(reader.wrong("socket", problem));
    };
    if let Some(other) = named.next() {
        return Err(reader.wrong(other, format!("and `{key}` are two sources; leave one out")));
    }
    if key != "socket" && reader.has("valid_for") {
        let problem = "is of the lines of a socket; the other sources say themselves how long they hold: write it beside \
                       socket = \"/run/fulmar/link.sock\", or leave it out";
        return Err(reader.wrong("valid_for", problem));
    }
    if key != "dlep" && reader.has("destination") {
        let problem =
            "is of a modem that speaks DLEP; write it beside dlep = \"DEVICE\", or leave it out";
        return Err(reader.wrong("destination", problem));
    }
    if key != "device" && reader.has("station") {
        let problem = "is of a Wi-Fi device; write it beside device = \"wlan0\", or leave it out";
        return Err(reader.wrong("station", problem));
    }
    match key {
        "socket" => socket(reader).map(LinkSource::Socket),
        "schedule" => {
            let file: String = reader.required("schedule", "\"/etc/fulmar/passes.csv\"")?;
            Ok(LinkSource::Schedule(PathBuf::from(file)))
        }
        "dlep" => Ok(LinkSource::Dlep {
            device: reader.required::<Device>("dlep", "\"eth1\"")?.0,
            destination: reader.value("destination")?,
        }),
        _ => Ok(LinkSource::Device {
            device: reader.required::<Device>("device", "\"wlan0\"")?.0,
            station: reader.value("station")?,
        }),
    }
}

fn socket(reader: &TableReader<'_>) -> Result<PathBuf, SettingsError> {
    let socket: String = reader.required("socket", "\"/run/fulmar/link.sock\"")?;
    let socket = PathBuf::from(socket);
    if !socket.is_absolute() || socket.as_os_str().as_bytes().len() > SOCKET_BYTES_MAX {
        let problem = format!(
            "must begin with / and have at most {SOCKET_BYTES_MAX} octets; write socket = \"/run/fulmar/link.sock\""
        );
        return Err(reader.wrong("socket", problem));
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use crate::gateway::config::{GatewayConfig, LinkSource};
    use core::time::Duration;

    fn read(links: &str) -> Result<GatewayConfig, String> {
        let text = format!(
            "[gateway]\nname = \"a\"\n[security]\nkind = \"none\"\n[[peer]]\nname = \"b\"\naddress = \"192.0.2.1:4914\"\n\
             [[peer.path]]\ndevice = \"wwan0\"\n[egress]\nallow = [\"127.0.0.1:80\"]\n{links}"
        );
        GatewayConfig::read("a.toml", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_link_serves_a_peer_s_address_or_one_of_its_paths() {
        let config = read(
            "[[link]]\nname = \"sat\"\nsocket = \"/run/sat.sock\"\n[[link]]\nname = \"lte\"\npath = 1\nsocket = \"/run/lte.sock\"\nvalid_for = \"5s\"\n",
        )
        .expect("sound");
        let [sat, lte] = &config.links[..] else {
            panic!("{:?}", config.links)
        };
        assert_eq!(
            (sat.peer, sat.path, sat.valid_for),
            (0, 0, Duration::from_secs(30))
        );
        assert_eq!((lte.path, lte.valid_for), (1, Duration::from_secs(5)));
        assert_eq!(lte.source, LinkSource::Socket("/run/lte.sock".into()));
    }

    #[test]
    fn a_link_is_told_of_by_a_socket_a_schedule_a_modem_or_a_device() {
        let config = read(
            "[[link]]\nname = \"pass\"\nschedule = \"passes.csv\"\n[[link]]\nname = \"radio\"\npath = 1\ndlep = \"eth1\"\ndestination = \"02:00:00:00:00:01\"\n",
        )
        .expect("sound");
        let device = read(
            "[[link]]\nname = \"port\"\ndevice = \"eth0\"\n[[link]]\nname = \"wifi\"\npath = 1\ndevice = \"wlan0\"\nstation = \"02:00:00:00:00:02\"\n",
        )
        .expect("sound");
        let words: Vec<String> = [config.links, device.links]
            .concat()
            .iter()
            .map(|link| link.source.in_words())
            .collect();
        assert_eq!(
            words,
            [
                "the schedule passes.csv",
                "a modem on eth1 that speaks DLEP, about its destination 02:00:00:00:00:01",
                "the kernel, of the device eth0",
                "the kernel, of the device wlan0, about its station 02:00:00:00:00:02"
            ]
        );
    }

    #[test]
    fn what_cannot_be_a_link_is_refused_with_the_field_and_the_remedy() {
        let twice = "[[link]]\nname = \"sat\"\nsocket = \"/run/a.sock\"\n[[link]]\nname = \"lte\"\nsocket = \"/run/b.sock\"\n";
        let same_name = "[[link]]\nname = \"sat\"\nsocket = \"/run/a.sock\"\n[[link]]\nname = \"sat\"\npath = 1\nsocket = \"/run/b.sock\"\n";
        let same_socket = "[[link]]\nname = \"sat\"\nsocket = \"/run/a.sock\"\n[[link]]\nname = \"lte\"\npath = 1\nsocket = \"/run/a.sock\"\n";
        for (links, said) in [
            ("[[link]]\nname = \"sat\"\n", "`link.0.socket`: is missing"),
            ("[[link]]\nsocket = \"/run/a.sock\"\n", "`link.0.name`"),
            (
                "[[link]]\nname = \"a b\"\nsocket = \"/run/a.sock\"\n",
                "without spaces",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"a.sock\"\n",
                "must begin with /",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"/a\"\nvalid_for = \"10ms\"\n",
                "at least 1s",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"/a\"\npath = 2\n",
                "`link.0.path`",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"/a\"\npeer = \"c\"\n",
                "`link.0.peer`",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"/a\"\ndlep = \"eth1\"\n",
                "are two sources",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"/a\"\ndestination = \"02:00:00:00:00:01\"\n",
                "write it beside dlep",
            ),
            (
                "[[link]]\nname = \"sat\"\nsocket = \"/a\"\nstation = \"02:00:00:00:00:01\"\n",
                "write it beside device",
            ),
            (
                "[[link]]\nname = \"sat\"\nschedule = \"a.csv\"\nvalid_for = \"60s\"\n",
                "`link.0.valid_for`: is of the lines of a socket",
            ),
            (
                "[[link]]\nname = \"sat\"\ndlep = \"eth1\"\ndestination = \"02:00\"\n",
                "write 02:00:00:00:00:01",
            ),
            (twice, "a path has one link"),
            (same_name, "is another link's"),
            (same_socket, "is that of another link too"),
        ] {
            let error = read(links).expect_err(links);
            assert!(error.contains(said), "{links}: {error}");
        }
    }
}
