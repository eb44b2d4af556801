"use strict";
(() => {
  const EVERY = 1000, HISTORY_EVERY = 10000, HISTORY_FIRST = 2000, HISTORY_YOUNG = 30, PATIENCE = 6000;
  const POINTS_DRAWN = 300;
  const VERDICTS_SHOWN = 12, DECISIONS_SHOWN = 8, FLOWS_SHOWN = 10;
  // A flow's rate is of so many looks.
  const LOOKS_KEPT = 11;
  // From here on a window is called ten seconds.
  const WHOLE_WINDOW = 9.5;
  // An axis ends above this part of the values, if the largest is so many times as large.
  const USUAL_PART = 0.97, OUTLIER = 3;
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const words = new Map(JSON.parse(byId("words").textContent).map((word) => [word.name, word.help]));
  const fixed = new URLSearchParams(location.search).get("sequence");
  // What is drawn, each by the labels of its columns.
  const CHARTS = [
    ["Goodput sent, all peers", "bit/s", ["goodput sent"]],
    ["Goodput received, all peers", "bit/s", ["goodput received"]],
    ["From here to the peer", "bit/s", ["sent on the wire", "payload sent, confirmed"]],
    ["From the peer to here", "bit/s", ["payload received"]],
    ["Loss and repair from here to the peer, a second", "",
      ["datagrams lost, to the peer", "TPDUs recovered by parity, there", "TPDUs recovered by repetition",
        "TPDUs lost for good, there"]],
    ["Loss and repair from the peer to here, a second", "",
      ["datagrams lost, from the peer", "TPDUs recovered by parity, here", "TPDUs lost for good, here"]],
    ["Delay", "s", ["round trip", "confirmed after, median", "confirmed after, 99 %"]],
  ];
  const GRADES = ["good", "poor", "bad"];
  let view = null, history = null, heard = null, span = 3600, pointer = null, chosen = 0;
  // What is shown in full, by the reader's wish.
  const whole = {verdicts: false, decisions: false, flows: false};
  let order = {key: "rate", down: true}, looks = [];

  // Every text goes in as text: nothing that a peer or a client says is ever read as markup.
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element && !name.startsWith("aria")) element[name] = value; else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function drawn(tag, properties, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function say(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  // As `say`, with what stands between backticks as code.
  function sayMarked(element, text) {
    if (element.dataset.said === text) return;
    element.dataset.said = text;
    element.replaceChildren(...text.split("`").map((part, n) => n % 2 ? make("code", {}, part) : part));
  }

  // Makes the children of `parent` those of `items`; who stays is changed in place, so that what is open stays open.
  function sync(parent, items, keyOf, create, change) {
    const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
    items.forEach((item, n) => {
      const key = keyOf(item, n);
      let child = old.get(key);
      if (child) old.delete(key);
      else {
        child = create(item);
        child.dataset.key = key;
      }
      // Before it is changed, so that what is drawn in it finds its size.
      if (parent.children[n] !== child) parent.insertBefore(child, parent.children[n] || null);
      change(child, item);
    });
    for (const child of old.values()) child.remove();
  }

  function helpOf(series) {
    return words.get(series.split("{")[0]) || "";
  }

  function newFigure(figure) {
    const help = helpOf(figure.series);
    const more = make("dd", {className: "help", hidden: true}, help);
    const button = make("button", {type: "button", title: help, "aria-expanded": "false"}, figure.label);
    button.addEventListener("click", () => {
      more.hidden = !more.hidden;
      button.setAttribute("aria-expanded", String(!more.hidden));
    });
    return make("div", {className: "figure"}, make("dt", {}, button), make("dd", {className: "value"}), more);
  }

  function changeFigure(element, figure) {
    element.dataset.series = figure.series;
    if (figure.value === null) delete element.dataset.value; else element.dataset.value = figure.value;
    say(element.querySelector(".value"), figure.text);
  }

  function changeGroups(element, groups, heading) {
    sync(element, groups, (group) => group.title,
      (group) => make("div", {className: group.title === "Now" ? "now" : ""}, make(heading, {}, group.title), make("dl")),
      (child, group) => sync(child.querySelector("dl"), group.figures, (figure) => figure.series, newFigure, changeFigure));
  }

  // A span of the last seconds, in words; nothing before anything was measured.
  function lastSeconds(seconds) {
    return seconds === null ? "" : `last ${seconds >= WHOLE_WINDOW ? 10 : Math.max(Math.round(seconds), 1)} s`;
  }

  // Verdicts and alarms.

  function chosenPeer() {
    return view.peers[chosen] || view.peers[0];
  }

  function choosePeer(index) {
    chosen = index;
    byId("peer").value = String(index);
    history = null;
    show();
    remember();
  }

  function newVerdict(peer) {
    const button = make("button", {type: "button"}, peer.name);
    button.addEventListener("click", () => choosePeer(view.peers.findIndex((one) => one.name === peer.name)));
    return make("li", {}, make("b"), make("span", {className: "of"}, button), make("span", {className: "text"}));
  }

  function showVerdicts() {
    const worst = view.peers.map((peer, n) => ({peer, n, grade: GRADES.indexOf(peer.verdict.grade)}))
      .sort((one, other) => other.grade - one.grade || one.n - other.n).map((one) => one.peer);
    const list = byId("verdicts"), many = worst.length > 1;
    list.classList.toggle("many", worst.length > 3);
    sync(list, whole.verdicts ? worst : worst.slice(0, VERDICTS_SHOWN), (peer) => peer.name, newVerdict, (item, peer) => {
      const grade = peer.verdict.grade;
      item.className = "verdict " + grade;
      item.dataset.state = peer.verdict.state;
      item.querySelector("b").className = "badge " + grade;
      say(item.querySelector("b"), grade);
      sayMarked(item.querySelector(".text"), peer.verdict.text);
      const button = item.querySelector("button");
      button.disabled = !many;
      button.setAttribute("aria-pressed", String(many && peer === chosenPeer()));
    });
    byId("further-verdicts").hidden = worst.length <= VERDICTS_SHOWN;
    say(byId("all-verdicts"), whole.verdicts ? "only the worst" : `all ${worst.length} peers`);
    const grade = byId("grade"), before = grade.textContent;
    grade.hidden = false;
    grade.className = "badge " + view.grade;
    say(grade, view.grade);
    byId("unprotected").hidden = !view.unprotected;
    // A screen reader hears of changes, and not of every second.
    if (before !== "" && before !== view.grade) say(byId("changed"), `The gateway is ${view.grade} now.`);
  }

  function showAlarms() {
    byId("alarmed").hidden = view.alarms.length === 0;
    sync(byId("alarms"), view.alarms, (alarm) => `${alarm.rule} ${alarm.peer}`,
      () => make("li", {}, make("b"), " ", make("strong"), " ", make("span"),
        make("p", {className: "why"}, make("b", {}, "Cause: "), make("span", {className: "cause"}), " ",
          make("b", {}, "Cure: "), make("span", {className: "cure"}))),
      (item, alarm) => {
        item.querySelector("b").className = "badge " + alarm.grade;
        say(item.querySelector("b"), alarm.grade);
        say(item.querySelector("strong"), (alarm.peer === null ? "" : alarm.peer + ", ") + alarm.rule.replaceAll("_", " ") + ":");
        sayMarked(item.querySelector("span"), alarm.text + ".");
        sayMarked(item.querySelector(".cause"), alarm.cause + ".");
        sayMarked(item.querySelector(".cure"), alarm.cure + ".");
      });
  }

  // The picture of the link.

  function perSecond(value) {
    return value >= 9.95 ? String(Math.round(value)) : value.toFixed(1);
  }

  // The bars and bands of a direction: sent, lost by cause, repaired by what, delivered.
  function drawWay(svg, way) {
    const {width, height} = svg.getBoundingClientRect();
    if (width === 0) return;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", `${way.title}: ${way.says}`);
    if (way.sent <= 0) {
      svg.append(drawn("text", {class: "empty", x: width / 2, y: height / 2, "text-anchor": "middle"},
        way.is_untold ? "not told yet" : "nothing was sent"));
      return;
    }
    const sum = (parts) => parts.reduce((all, part) => all + part.per_second, 0);
    const repairs = [...way.repaired.map((part, n) => [part.per_second, "r" + Math.min(n, 3)]),
      [way.needed_no_repair, "spared"], [way.lost_for_good, "gone"]].filter(([rate]) => rate > 0);
    const lost = sum(way.lost), mended = repairs.reduce((all, [rate]) => all + rate, 0);
    const top = 20, bar = 10, gap = 8;
    const scale = (height - top - 2 - gap) / Math.max(way.sent, 1e-9);
    // What few are is seen all the same.
    const high = (rate) => rate > 0 ? Math.max(rate * scale, 1.5) : 0;
    const at = [0, 0.36, 0.64, 1].map((part) => part * (width - bar));
    const box = (kind, x, y, tall) => svg.append(drawn("rect", {class: kind, x, y, width: bar, height: tall, rx: 1}));
    const band = (kind, x0, y0, x1, y1, h0, h1) => {
      const middle = (x0 + x1) / 2;
      svg.append(drawn("path", {class: kind, d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}L${x1} ${y1 + h1}` +
        `C${middle} ${y1 + h1} ${middle} ${y0 + h0} ${x0} ${y0 + h0}Z`}));
    };
    const arrived = high(Math.max(way.sent - lost, 0)), below = top + arrived + gap;
    const lostHigh = high(Math.min(lost, way.sent)), part = mended > 0 ? lostHigh / mended : 0;
    band("band", bar, top, at[3], top, arrived, arrived);
    if (lost > 0) band("lost-band", bar, top + arrived, at[1], below, lostHigh, lostHigh);
    if (lost > 0 && mended > 0) band("lost-band", at[1] + bar, below, at[2], below, lostHigh, lostHigh);
    box("arrived", 0, top, arrived + lostHigh);
    let y = below;
    way.lost.forEach((cause, n) => {
      const tall = lostHigh * cause.per_second / lost;
      box("l" + Math.min(n, 3), at[1], y, tall);
      y += tall;
    });
    let into = top + arrived;
    y = below;
    for (const [rate, kind] of repairs) {
      const tall = rate * part;
      if (kind.startsWith("r")) {
        band("mend-band", at[2] + bar, y, at[3], into, tall, tall);
        box(kind, at[3], into, tall);
        into += tall;
      }
      box(kind, at[2], y, tall);
      y += tall;
    }
    box("arrived", at[3], top, arrived);
    ["sent", "lost", "repaired", "delivered"].forEach((word, n) => svg.append(drawn("text",
      {x: n === 3 ? width : at[n], y: 12, "text-anchor": n === 3 ? "end" : "start"}, n === 0 || n === 3 || lost > 0 ? word : "")));
  }

  function showKey(list, parts) {
    sync(list, parts, ([label]) => label,
      ([, , kind]) => {
        const swatch = drawn("svg", {viewBox: "0 0 10 10", "aria-hidden": "true"});
        swatch.append(drawn("rect", {class: kind, width: 10, height: 10, rx: 2}));
        return make("li", {}, swatch, make("span"), make("b"));
      },
      (item, [label, rate, kind]) => {
        item.querySelector("rect").setAttribute("class", kind);
        say(item.querySelector("span"), label);
        say(item.querySelector("b"), rate);
      });
  }

  function showPicture() {
    const peer = chosenPeer();
    byId("picture").hidden = !peer || peer.ways.length === 0;
    if (byId("picture").hidden) return;
    say(byId("peer-name"), peer.name);
    const span = lastSeconds(view.window_seconds);
    say(document.querySelector("#picture-title .window"), span && ", " + span);
    const select = byId("peer");
    select.hidden = view.peers.length < 2;
    sync(select, view.peers, (one) => one.name, (one) => make("option", {}, one.name),
      (option, one) => { option.value = String(view.peers.indexOf(one)); });
    sync(byId("ways"), peer.ways, (_, n) => String(n),
      () => make("figure", {className: "card"}, make("h3"), make("p", {className: "big"}, make("span"), make("small", {}, " delivered")),
        drawn("svg", {role: "img"}), make("div", {className: "key"}, make("ul"), make("ul"))),
      (card, way) => {
        say(card.querySelector("h3"), way.title);
        say(card.querySelector(".big span"), way.delivered_text);
        drawWay(card.querySelector("svg"), way);
        const [left, right] = card.querySelectorAll("ul");
        showKey(left, [["sent, datagrams a second", perSecond(way.sent), "arrived"],
          ...way.lost.map((part, n) => ["lost " + part.label, perSecond(part.per_second), "l" + Math.min(n, 3)])]);
        showKey(right, [...way.repaired.map((part, n) => ["repaired " + part.label, perSecond(part.per_second), "r" + Math.min(n, 3)]),
          ["not repaired yet, or not needed", perSecond(way.needed_no_repair), "spared"], ["lost for good", perSecond(way.lost_for_good), "gone"]]);
      });
    byId("paths-part").hidden = peer.paths.length === 0;
    sync(byId("paths").tBodies[0], peer.paths, (path) => String(path.path), () => make("tr"), (row, path) => cells(row, [
      ["path", path.path + (path.cost ? `, cost ${path.cost}` : ""), "wide"], ["state", path.state, ""], ["rate", path.rate_text, "n"],
      ["round trip", path.rtt_text, "n"], ["loses", path.lost_text, ""], ["outages", path.outages_text, ""]]));
  }

  // Figures.

  function showGateway() {
    const section = byId("gateway");
    if (!section.firstChild) section.append(make("div", {className: "card"}, make("div"), make("details", {},
      make("summary", {}, "Carrier"), make("div", {className: "groups"}))));
    changeGroups(section.querySelector(".card > div"), view.groups.slice(0, 1), "h2");
    changeGroups(section.querySelector("details > div"), view.groups.slice(1), "h3");
  }

  function showPeers() {
    sync(byId("peers"), view.peers, (peer) => peer.name,
      (peer) => make("article", {className: "card"},
        make("h3", {}, make("span", {}, peer.name), make("span", {className: "badge"})),
        make("p", {className: "says"}), make("div", {className: "groups"})),
      (card, peer) => {
        const badge = card.querySelector(".badge");
        say(badge, peer.link);
        badge.className = "badge " + peer.link;
        card.classList.toggle("bad", peer.link === "down");
        say(card.querySelector(".says"), peer.says);
        changeGroups(card.querySelector(".groups"), peer.groups, "h4");
      });
  }

  function cells(row, values) {
    sync(row, values, (_, n) => String(n), () => make("td"), (cell, [label, text, kind]) => {
      cell.dataset.label = label;
      cell.className = kind;
      say(cell, text);
    });
  }

  // Each flow's rates since a look some seconds ago.
  function flowRates() {
    // A gateway that was started again has other flows.
    if (looks.length && looks.at(-1).at > view.uptime_seconds) looks = [];
    // The same view is shown again whenever its reader sorts or finds.
    if (!looks.length || looks.at(-1).at < view.uptime_seconds) {
      looks.push({at: view.uptime_seconds, of: new Map(view.flows.map((flow) => [flow.id, flow]))});
    }
    if (looks.length > LOOKS_KEPT) looks.shift();
    const first = looks[0], seconds = view.uptime_seconds - first.at;
    say(byId("flows-span"), seconds > 0.5 && view.flows.length ? `, rates of the ${lastSeconds(seconds)}` : "");
    return (flow) => {
      const before = first.of.get(flow.id);
      const since = before ? seconds : flow.seconds;
      if (!(since > 0.5)) return [null, null];
      const rate = (now, then) => Math.max(now - then, 0) * 8 / since;
      return [rate(flow.sent_bytes, before ? before.sent_bytes : 0), rate(flow.received_bytes, before ? before.received_bytes : 0)];
    };
  }

  // The columns of the table: a key to sort by, the label, the value, the words, and the class of the cells.
  const FLOW_COLUMNS = [
    ["destination", (row) => row.flow.destination, (row) => row.flow.destination, "wide"],
    ["from", (row) => row.flow.direction, (row) => (row.flow.direction === "in" ? "here, " : "there, ") + row.flow.protocol, ""],
    ["class", (row) => row.flow.class, (row) => row.flow.class, ""],
    ["peer", (row) => row.flow.peer, (row) => row.flow.peer, ""],
    ["rate", (row) => (row.out || 0) + (row.in || 0), (row) => scaled(row.out === null ? null : row.out + row.in, "bit/s"), "n"],
    ["sent", (row) => row.flow.sent_bytes, (row) => row.flow.sent_text, "n"],
    ["received", (row) => row.flow.received_bytes, (row) => row.flow.received_text, "n"],
    ["age", (row) => row.flow.seconds, (row) => row.flow.age_text, "n"],
  ];

  function showFlows() {
    const table = byId("flows"), rates = flowRates();
    table.hidden = view.flows.length === 0;
    byId("no-flows").hidden = view.flows.length > 0;
    byId("flow-controls").hidden = view.flows.length <= FLOWS_SHOWN && byId("search").value === "";
    const wanted = byId("search").value.trim().toLowerCase();
    const found = view.flows.map((flow) => {
      const [out, back] = rates(flow);
      return {flow, out, in: back};
    }).filter(({flow}) => `${flow.destination} ${flow.class} ${flow.peer} ${flow.protocol}`.toLowerCase().includes(wanted));
    const [, value] = FLOW_COLUMNS.find(([key]) => key === order.key);
    const compare = (one, other) => typeof one === "number" ? one - other : one.localeCompare(other);
    found.sort((one, other) => (order.down ? -1 : 1) * compare(value(one), value(other)) || compare(one.flow.id, other.flow.id));
    sync(table.tHead.rows[0], FLOW_COLUMNS, ([key]) => key, ([key]) => {
      const button = make("button", {type: "button"}, key);
      button.addEventListener("click", () => {
        order = {key, down: order.key === key ? !order.down : ["rate", "sent", "received", "age"].includes(key)};
        showFlows();
      });
      return make("th", {scope: "col"}, button);
    }, (head, [key, , , kind]) => {
      head.className = kind === "n" ? "n" : "";
      if (order.key === key) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const shown = whole.flows ? found : found.slice(0, FLOWS_SHOWN);
    sync(table.tBodies[0], shown, (row) => row.flow.id, () => make("tr"),
      (line, row) => cells(line, FLOW_COLUMNS.map(([key, , words, kind]) => [key, words(row), kind])));
    const more = byId("more-flows"), left = found.length - shown.length;
    more.hidden = found.length <= FLOWS_SHOWN && view.flows_left_out === 0 && wanted === "";
    const younger = view.flows_left_out ? `; ${view.flows_left_out} younger flows are not listed` : "";
    say(more.querySelector("span"), `${shown.length} of ${found.length}${wanted ? " found" : ""}${younger}.`);
    byId("all-flows").hidden = left === 0 && !whole.flows;
    say(byId("all-flows"), whole.flows ? `only ${FLOWS_SHOWN}` : "all of them");
  }

  function showClasses() {
    const table = byId("classes");
    table.hidden = view.classes.length === 0;
    byId("no-classes").hidden = view.classes.length > 0;
    if (table.hidden) return;
    const heads = [{label: "class", series: ""}, ...view.classes[0].figures];
    sync(table.tHead.rows[0], heads, (head) => head.label, (head) => make("th", {title: helpOf(head.series)}, head.label),
      (cell, head) => { cell.className = head.series ? "n" : ""; });
    sync(table.tBodies[0], view.classes, (one) => one.name, () => make("tr"), (row, one) => {
      cells(row, [["class", one.name, "wide"], ...one.figures.map((figure) => [figure.label, figure.text, "n"])]);
      one.figures.forEach((figure, n) => {
        row.cells[n + 1].dataset.series = figure.series;
        if (figure.value !== null) row.cells[n + 1].dataset.value = figure.value;
      });
    });
  }

  function clock(uptime) {
    const at = new Date(heard.getTime() - (view.uptime_seconds - uptime) * 1000);
    return at.toTimeString().slice(0, 8);
  }

  function named(decision) {
    return (decision.peer === null ? "" : decision.peer + " ") + decision.what.replaceAll("_", " ");
  }

  // A gateway that was started again counts from 0 again: only with its time does a number mean one decision.
  function showDecisions() {
    byId("no-decisions").hidden = view.decisions.length > 0;
    const shown = whole.decisions ? view.decisions : view.decisions.slice(0, DECISIONS_SHOWN);
    sync(byId("decisions"), shown, (one) => `${one.number} at ${one.uptime_seconds}`,
      (one) => make("li", {}, make("time", {}, clock(one.uptime_seconds)), make("b", {}, named(one)), make("span", {}, one.why)),
      () => {});
    byId("further-decisions").hidden = view.decisions.length <= DECISIONS_SHOWN;
    say(byId("all-decisions"), whole.decisions ? "only the latest" : `all ${view.decisions.length} decisions`);
  }

  function show() {
    const down = view.peers.filter((peer) => peer.link !== "up").length;
    const mark = down ? `▼ ${down} down · ` : view.grade !== "good" ? `${view.grade} · ` : view.unprotected ? "not protected · " : "";
    document.title = mark + view.name + " · Fulmar";
    say(byId("name"), view.name);
    say(byId("about"), `Fulmar ${view.version}, snapshot ${view.sequence}` + (fixed === null ? "" : ", as it was then"));
    showVerdicts();
    showAlarms();
    showGateway();
    showPicture();
    showPeers();
    showFlows();
    showClasses();
    showDecisions();
    // Last, so that whoever waits for it finds everything.
    document.body.dataset.sequence = view.sequence;
  }

  // Charts.

  function scaled(value, unit) {
    if (value === null || value === undefined) return "–";
    if (unit === "s") return value < 1 ? `${+(value * 1000).toPrecision(3)} ms` : `${+value.toPrecision(3)} s`;
    let prefix = "";
    for (const next of ["k", "M", "G"]) {
      if (value < 999.5) break;
      value /= 1000;
      prefix = next;
    }
    const digits = +value.toPrecision(3);
    return unit === "" ? `${digits}${prefix && " " + prefix}` : `${digits} ${prefix}${unit}`;
  }

  // A round number at or above `value`.
  function ceiling(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 5, 8, 10].map((n) => n * power).find((n) => n >= value * 0.999999);
  }

  // The top of an axis: that of the values, unless a few of them would flatten all others.
  function axisTop(values) {
    const sorted = values.filter((value) => typeof value === "number" && value > 0).sort((one, other) => one - other);
    if (sorted.length === 0) return 1;
    const most = sorted.at(-1), usual = sorted[Math.floor((sorted.length - 1) * USUAL_PART)];
    return ceiling(most > OUTLIER * usual ? usual * 1.3 : most);
  }

  // At most one point in `seconds`: the means of those that fall together, which last equally long.
  function spaced(points, seconds) {
    const bins = new Map();
    for (const point of points) {
      const bin = Math.floor(point[0] / Math.max(seconds, 1));
      if (bins.has(bin)) bins.get(bin).push(point); else bins.set(bin, [point]);
    }
    return [...bins.values()].map((bin) => bin[0].map((_, column) => {
      const values = bin.map((point) => point[column]).filter((value) => value !== null);
      if (column === 0) return bin.at(-1)[0];
      return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
    }));
  }

  function newChart([title]) {
    const svg = drawn("svg", {role: "img"});
    svg.addEventListener("pointermove", (event) => {
      pointer = event.clientX - svg.getBoundingClientRect().left;
      draw();
    });
    svg.addEventListener("pointerleave", () => {
      pointer = null;
      draw();
    });
    return make("figure", {className: "card"}, make("h3", {}, title), svg, make("ul", {className: "legend"}));
  }

  // The history, and behind it the point of the figures that stand beside it.
  function drawnHistory() {
    const point = chosenPeer()?.point, last = history.points.at(-1);
    if (!point || (last && last[0] >= point[0])) return history;
    return {...history, points: [...history.points, point], uptime_seconds: Math.max(history.uptime_seconds, point[0])};
  }

  function changeChart(element, [title, unit, labels]) {
    const history = drawnHistory();
    const columns = labels.map((label) => 1 + history.columns.findIndex((column) => column.label === label));
    const up = 1 + history.columns.findIndex((column) => column.label === "link up");
    const svg = element.querySelector("svg");
    const {width, height} = svg.getBoundingClientRect();
    if (width === 0) return;
    const left = 62, right = 6, top = 8, bottom = 20;
    const end = Math.max(history.uptime_seconds, 1), begin = Math.max(end - span, 0);
    const all = history.points.filter((point) => point[0] >= begin);
    const points = spaced(all, (end - begin) / POINTS_DRAWN);
    const high = axisTop(points.flatMap((point) => columns.map((n) => point[n])));
    const x = (at) => left + (at - begin) / Math.max(end - begin, 1) * (width - left - right);
    const y = (value) => height - bottom - Math.min(value / high, 1) * (height - top - bottom);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const isDown = (point) => point !== undefined && point[up] < 1;
    points.forEach((point, n) => {
      if (!isDown(point) || isDown(points[n - 1])) return;
      let last = n;
      while (isDown(points[last + 1])) last += 1;
      const from = x(n ? points[n - 1][0] : begin);
      svg.append(drawn("rect", {class: "outage", x: from, y: top, width: Math.max(x(points[last][0]) - from, 1),
        height: height - top - bottom}));
    });
    for (const part of [0, 0.5, 1]) {
      const at = y(high * part);
      svg.append(drawn("line", {class: "grid", x1: left, x2: width - right, y1: at, y2: at}),
        drawn("text", {x: left - 6, y: at + 4, "text-anchor": "end"}, scaled(high * part, unit)));
    }
    for (const part of [0, 0.5, 1]) {
      const at = begin + (end - begin) * part;
      const ago = Math.round((end - at) / 60);
      const text = end - begin < 120 ? `${Math.round(end - at)} s ago` : `${ago} min ago`;
      svg.append(drawn("text", {x: x(at), y: height - 5, "text-anchor": ["start", "middle", "end"][part * 2]},
        part === 1 ? "now" : text));
    }
    columns.forEach((n, series) => {
      let path = "", pen = false;
      for (const point of points) {
        if (point[n] === null || point[n] === undefined) pen = false;
        else {
          path += `${pen ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[n]).toFixed(1)}`;
          pen = true;
        }
      }
      svg.append(drawn("path", {class: "s" + series, d: path || "M0 0"}));
      const beyond = points.filter((point) => point[n] > high * 1.000001);
      for (const point of beyond) {
        const at = x(point[0]);
        svg.append(drawn("polygon", {class: "above", points: `${at - 3},${top + 5} ${at + 3},${top + 5} ${at},${top}`}));
      }
    });
    for (const one of decisionsIn(begin, end)) {
      const at = x(one.uptime_seconds);
      svg.append(drawn("line", {class: "decision", x1: at, x2: at, y1: height - bottom, y2: height - bottom + 6}));
    }
    const wanted = pointer === null ? Infinity : begin + (pointer - left) / (width - left - right) * (end - begin);
    if (!points.some((point) => columns.some((n) => typeof point[n] === "number"))) {
      svg.append(drawn("text", {class: "empty", x: (left + width) / 2, y: height / 2 - 12, "text-anchor": "middle"},
        "nothing measured yet"));
    }
    const near = points.reduce((best, point) =>
      best === null || Math.abs(point[0] - wanted) <= Math.abs(best[0] - wanted) ? point : best, null);
    if (pointer !== null && near) {
      svg.append(drawn("line", {class: "cursor", x1: x(near[0]), x2: x(near[0]), y1: top, y2: height - bottom}));
    }
    // Without a pointer the legend says what the figures beside the charts say.
    const shown = pointer === null ? all.at(-1) : near;
    const told = labels.map((label, n) => `${label} ${scaled(shown ? shown[columns[n]] : null, unit)}`);
    svg.setAttribute("aria-label", `${title}: ${told.join(", ")}`);
    sync(element.querySelector("ul"), labels, (label) => label,
      (label) => make("li", {title: helpOf(history.columns[columns[labels.indexOf(label)] - 1].name)},
        make("i", {className: "s" + labels.indexOf(label)}), make("span")),
      (item, label) => say(item.querySelector("span"), told[labels.indexOf(label)]));
  }

  function decisionsIn(begin, end) {
    const peer = chosenPeer();
    return view.decisions.filter((one) => one.uptime_seconds >= begin && one.uptime_seconds <= end
      && (one.peer === null || one.peer === peer?.name));
  }

  // The moment under the pointer, with the decisions of that time.
  function sayMoment() {
    const chart = document.querySelector("#charts svg");
    if (pointer === null || !chart) {
      say(byId("moment"), "Each point is of the ten seconds before it, or of all before it where those are fewer. Shaded: the link was not up. Strokes below a chart: decisions. " +
        "Triangles: values beyond the axis.");
      return;
    }
    const left = 62, right = 6, width = chart.getBoundingClientRect().width;
    const end = Math.max(drawnHistory().uptime_seconds, 1), begin = Math.max(end - span, 0), wide = end - begin;
    const at = begin + (pointer - left) / (width - left - right) * wide;
    const near = decisionsIn(at - wide / 80, at + wide / 80).map((one) => `${clock(one.uptime_seconds)} ${named(one)}: ${one.why}`);
    say(byId("moment"), near.length ? near.slice(0, 2).join("; ") : clock(Math.min(at, end)));
  }

  function draw() {
    byId("drawings").hidden = history === null || view === null;
    if (byId("drawings").hidden) return;
    sayMoment();
    sync(byId("charts"), CHARTS, ([title]) => title, newChart, changeChart);
  }

  function choose(seconds) {
    span = seconds;
    for (const button of document.querySelectorAll("[data-span]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.span) === seconds));
    }
    say(byId("span-name"), {60: "minute", 300: "five minutes", 3600: "hour"}[seconds]);
    draw();
  }

  // Asking.

  async function ask(path) {
    const answer = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(PATIENCE)});
    if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
    return answer.json();
  }

  function lose(error) {
    document.body.dataset.state = "lost";
    const banner = byId("lost");
    // A failed fetch is a TypeError, one that took too long a DOMException: neither says anything useful.
    const why = error.constructor === Error ? error.message
      : "it has stopped, or the way to it is cut";
    const since = heard ? ` What is below is of ${heard.toTimeString().slice(0, 8)}.` : "";
    const what = fixed === null ? "The gateway does not answer" : "That snapshot cannot be shown";
    say(banner, `${what}: ${why}.${since}` + (fixed === null ? " Asking again every second." : ""));
    banner.hidden = false;
  }

  async function look() {
    let answer = null;
    try {
      answer = await ask(fixed === null ? "view" : "view?sequence=" + encodeURIComponent(fixed));
    } catch (error) {
      lose(error);
    }
    if (fixed === null) setTimeout(look, EVERY);
    if (answer === null) return;
    view = answer;
    heard = new Date();
    show();
    draw();
    byId("lost").hidden = true;
    document.body.dataset.state = fixed === null ? "live" : "fixed";
  }

  async function remember() {
    const peer = chosen;
    let answer = null;
    try {
      answer = await ask("history?peer=" + peer);
    } catch {
      // The other question says so.
      return;
    }
    if (peer === chosen) history = answer;
    draw();
  }

  async function keepRemembering() {
    await remember();
    // A young gateway's drawing grows fast.
    setTimeout(keepRemembering, history === null || history.points.length < HISTORY_YOUNG ? HISTORY_FIRST : HISTORY_EVERY);
  }

  for (const button of document.querySelectorAll("[data-span]")) {
    button.addEventListener("click", () => choose(Number(button.dataset.span)));
  }
  for (const part of Object.keys(whole)) {
    byId("all-" + part).addEventListener("click", () => {
      whole[part] = !whole[part];
      show();
    });
  }
  byId("peer").addEventListener("change", (event) => choosePeer(Number(event.target.value)));
  byId("search").addEventListener("input", () => { if (view !== null) showFlows(); });
  addEventListener("resize", () => {
    if (view !== null) showPicture();
    draw();
  });
  addEventListener("beforeprint", () => { byId("figures").open = true; });
  look();
  // The drawings are of now: beside figures of another instant they would mislead.
  if (fixed === null) keepRemembering();
})();
