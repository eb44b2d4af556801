"""The tests as a whole: none is forgotten, and random ones draw the same cases every time.

Each file of a crate's `tests` is a target of its manifest or a module of one, `main.rs` for most.
"""

import collections
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Circles of imports that may stay: the innermost folder that has all of it, the modules if it is not all that a table there lists, and the reason.
CIRCLES = {
    ("reproduce", "hybrid"): (set(), "its table lists its rows"),
    ("reproduce", "multi_mode"): (set(), "its table lists its rows"),
    ("reproduce", "slacp"): (set(), "its table lists its rows"),
    ("baseline", "tcp"): ({"connection", "endpoint"}, "a node's connections, and what is kept of those that are over"),
    ("fulmar",): ({"peers", "pumping", "relay", "sorting"}, "the type `Link` and a limit stand in the relay, which calls the others that need them"),
}

class Layout(unittest.TestCase):
    def test_each_file_of_tests_is_built(self):
        found = 0
        for main in ROOT.glob("crates/*/tests/main.rs"):
            manifest = tomllib.loads((main.parent.parent / "Cargo.toml").read_text())
            self.assertIs(manifest["package"]["autotests"], False)
            targets = {main, *(main.parent.parent / target.get("path", f"tests/{target['name']}.rs") for target in manifest["test"])}
            modules = (re.findall(r"^mod (\w+);", target.read_text(), re.MULTILINE) for target in targets)
            built = {target.stem for target in targets}.union(*modules)
            folders = [path.parent for name in ("mod.rs", "main.rs") for path in main.parent.glob(f"*/{name}")]
            for file in [*main.parent.glob("*.rs"), *folders]:
                found += 1
                remedy = f"add `mod {file.stem};` to {main.relative_to(ROOT)}, and use its harness as `crate::...`"
                self.assertIn(file.stem, built, remedy)
        self.assertGreater(found, 90)

    def test_crates_depend_on_what_they_may(self):
        """The arrows of ARCHITECTURE.md's table, held against the manifests: what is deployed never depends on a baseline."""
        may = {
            "proto": set(), "baseline": {"proto"}, "channel": {"proto"}, "settings": {"proto"}, "capture": {"proto"},
            "trace": {"proto", "channel"}, "sim": {"proto", "baseline", "channel", "settings", "capture"}, "reproduce": {"sim", "channel", "proto"},
            "lab": {"sim", "settings", "channel", "trace", "proto"},
            "net": {"proto", "channel", "settings", "capture"},
            "fulmar": {"net", "proto"},
            "cli": {"proto", "baseline", "channel", "settings", "capture", "trace", "lab", "sim", "reproduce", "net", "python"},
            "python": {"fulmar", "lab", "sim", "trace", "proto"},
        }
        found = {}
        for path in ROOT.glob("crates/*/Cargo.toml"):
            manifest = tomllib.loads(path.read_text())
            ours = {name.removeprefix("fulmar-") for name in manifest.get("dependencies", {}) if name.split("-")[0] == "fulmar"}
            found[path.parent.name] = ours
        self.assertEqual(found.keys(), may.keys())
        for crate, ours in found.items():
            self.assertLessEqual(ours, may[crate], f"{crate} may not depend on these")
        page = (ROOT / "ARCHITECTURE.md").read_text()
        for crate, allowed in may.items():
            (cell,) = re.findall(rf"^\| `{crate}` \| ([^|]*) \|", page, re.MULTILINE)
            told = set(re.findall(r"`(\w+)`", cell.split("; in tests")[0]))
            self.assertEqual(told, allowed if cell != "all" else set(), f"ARCHITECTURE.md on {crate}")

    def test_rooms_of_the_gateway_know_those_below_them_only(self):
        """The arrows of docs/adr/0028-rooms-of-the-gateway.md, held against the imports; the hall may know all rooms."""
        gateway = ROOT / "crates/net/src/gateway"
        may = {
            "config": {"GatewayError"},
            "sockets": {"config"},
            "flows": {"config", "GatewayError", "Link", "repeats", "sockets"},
            "entries": {"config", "GatewayError", "flows", "sockets"},
            "exits": {"config", "flows", "sockets", "tunnels"},
            "tunnels": {"config", "GatewayError", "flows", "privileges", "repeats", "sockets"},
            "peers": {"config", "Link", "sockets"},
            "links": {"config", "GatewayError", "Link", "peers", "repeats", "sockets"},
            "watch": {"config", "GatewayError", "Link", "flows", "links", "peers", "tunnels"},
        }
        rooms = {path.parent.name for path in gateway.glob("*/mod.rs")}
        self.assertEqual(rooms, may.keys(), "each room has its arrows here and in the ADR")
        known = {room: set() for room in rooms}
        for room in rooms:
            for path in (gateway / room).rglob("*.rs"):
                text = path.read_text()
                self.assertNotIn("gateway::{", text, f"{path}: name one room in each `use`")
                depth = len(path.relative_to(gateway).parts) - (path.name == "mod.rs")
                climbs = re.findall(r"\b((?:super::)+)(\w+)", text.split("#[cfg(test)]\nmod tests")[0])
                too_high = [name for ups, name in climbs if ups.count("super") >= depth]
                self.assertEqual(too_high, [], f"{path}: another room is named by `crate::gateway::...`")
                named = set(re.findall(r"\bgateway::(\w+)", text)) - {room}
                self.assertLessEqual(named, may[room], f"{path}: {room} may not know these")
                known[room] |= named
        self.assertEqual(known, may, "an arrow that nothing uses goes")
        for path in gateway.glob("*.rs"):
            if path.stem not in ("mod", "command", "running", "start"):
                self.assertIsNone(re.search(r"\bwatch::", path.read_text()), f"{path}: the watch is known to the loop and its start only")
        page = (ROOT / "docs/adr/0028-rooms-of-the-gateway.md").read_text()
        for room in rooms:
            self.assertIn(f"\n      {room}/ ", page, "the ADR's picture")

    def test_no_modules_of_a_crate_name_each_other_in_a_circle(self):
        loader = importlib.machinery.SourceFileLoader("circles", str(ROOT / "scripts/circles"))
        circles = importlib.util.module_from_spec(importlib.util.spec_from_loader("circles", loader))
        loader.exec_module(circles)
        remedy = "scripts/circles names the imports; most circles are one type or constant in the wrong room"
        met = set()
        for source in ROOT.glob("crates/*/src"):
            crate = source.parent.name
            for circle, _ in circles.Crate(crate).circles():
                place = (crate, *os.path.commonprefix(sorted(circle)))
                names = {"::".join(module[len(place) - 1:]) for module in circle}
                told = f"{crate}: {sorted('::'.join(module) for module in circle)}: {remedy}"
                self.assertIn(place, CIRCLES, told)
                self.assertEqual(names, CIRCLES[place][0] or names, told)
                met.add(place)
        self.assertEqual(met, set(CIRCLES), "an exception that is needed no more")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "round/src")
            source.mkdir(parents=True)
            (source / "lib.rs").write_text("mod a;\nmod b;\npub use b::Late;\n")
            (source / "a.rs").write_text("use crate::{self as root, Late as Then};\n// use crate::b::Nothing;\n")
            (source / "b.rs").write_text("#[cfg(test)]\nmod tests {\n    use crate::a::Early;\n}\n")
            self.assertEqual(circles.Crate("round", pathlib.Path(folder)).circles(), [])
            (source / "b.rs").write_text("pub struct Late(crate::a::Early);\n")
            ((circle, named),) = circles.Crate("round", pathlib.Path(folder)).circles()
            self.assertEqual(circle, {("a",), ("b",)})
            self.assertEqual(named[("a",)], {("b",): {"Late"}})

    def test_a_public_type_has_a_name_that_stands_alone(self):
        places = collections.defaultdict(set)
        for path in ROOT.glob("crates/*/src/**/*.rs"):
            declared = re.findall(r"^pub(?:\(crate\))? (?:struct|enum|trait|type|union) (\w+)", path.read_text(), re.MULTILINE)
            for name in declared:
                places[name].add(str(path.relative_to(ROOT)))
        self.assertGreater(len(places), 700)
        twice = {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}
        self.assertEqual(twice, {}, "rename one: TcpSender, not Sender")

    def test_no_random_test_has_a_seed_of_its_own(self):
        settings = tomllib.loads((ROOT / ".cargo/config.toml").read_text())
        self.assertRegex(settings["env"]["PROPTEST_RNG_SEED"], r"^\d+$")
        for path in ROOT.glob("crates/**/*.rs"):
            self.assertNotIn("rng_seed:", path.read_text(), f"{path}: the seed comes from .cargo/config.toml, or from scripts/explore")


if __name__ == "__main__":
    unittest.main()
