"use strict";
(() => {
  const EVERY = 1000, HISTORY_EVERY = 10000, HISTORY_FIRST = 2000, HISTORY_YOUNG = 30, PATIENCE = 6000;
  const POINTS_DRAWN = 300;
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
  let view = null, history = null, heard = null, span = 3600, pointer = null, chosen = 0;

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

  function changeGroups(element, groups) {
    sync(element, groups, (group) => group.title,
      (group) => make("div", {className: group.title === "Now" ? "now" : ""}, make("h3", {}, group.title), make("dl")),
      (child, group) => sync(child.querySelector("dl"), group.figures, (figure) => figure.series, newFigure, changeFigure));
  }

  function showGateway() {
    const section = byId("gateway");
    if (!section.firstChild) section.append(make("div", {className: "card"}, make("div"), make("details", {},
      make("summary", {}, "Carrier"), make("div", {className: "groups"}))));
    changeGroups(section.querySelector(".card > div"), view.groups.slice(0, 1));
    changeGroups(section.querySelector("details > div"), view.groups.slice(1));
  }

  function showPeers() {
    sync(byId("peers"), view.peers, (peer) => peer.name,
      (peer) => make("article", {className: "card"},
        make("h2", {}, make("span", {}, peer.name), make("span", {className: "badge"})),
        make("p", {className: "says"}), make("div", {className: "groups"})),
      (card, peer) => {
        const badge = card.querySelector(".badge");
        say(badge, peer.link);
        badge.className = "badge " + peer.link;
        card.classList.toggle("bad", peer.link === "down");
        say(card.querySelector(".says"), peer.says);
        changeGroups(card.querySelector(".groups"), peer.groups);
      });
  }

  function cells(row, values) {
    sync(row, values, (_, n) => String(n), () => make("td"), (cell, [label, text, kind]) => {
      cell.dataset.label = label;
      cell.className = kind;
      say(cell, text);
    });
  }

  function showFlows() {
    const table = byId("flows");
    table.hidden = view.flows.length === 0;
    byId("no-flows").hidden = view.flows.length > 0;
    sync(table.tBodies[0], view.flows, (flow) => flow.id, () => make("tr"), (row, flow) => cells(row, [
      ["from", (flow.direction === "in" ? "here, " : "there, ") + flow.protocol, ""],
      ["destination", flow.destination, "wide"], ["class", flow.class, ""], ["peer", flow.peer, ""],
      ["taken", flow.sent_text, "n"], ["given", flow.received_text, "n"], ["age", flow.age_text, "n"]]));
    const more = byId("more-flows");
    more.hidden = view.flows_left_out === 0;
    say(more, `${view.flows_left_out} younger flows are not listed.`);
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

  // A gateway that was started again counts from 0 again: only with its time does a number mean one decision.
  function showDecisions() {
    byId("no-decisions").hidden = view.decisions.length > 0;
    sync(byId("decisions"), view.decisions, (one) => `${one.number} at ${one.uptime_seconds}`,
      (one) => make("li", {}, make("time", {}, clock(one.uptime_seconds)),
        make("b", {}, (one.peer === null ? "" : one.peer + " ") + one.what.replaceAll("_", " ")), make("span", {}, one.why)),
      () => {});
  }

  function show() {
    const down = view.peers.filter((peer) => peer.link !== "up").length;
    document.title = (down ? `▼ ${down} down · ` : "") + view.name + " · Fulmar";
    say(byId("name"), view.name);
    say(byId("about"), `Fulmar ${view.version}, snapshot ${view.sequence}` + (fixed === null ? "" : ", as it was then"));
    showGateway();
    showPeers();
    showFlows();
    showClasses();
    showDecisions();
    const select = byId("peer");
    select.hidden = view.peers.length < 2;
    sync(select, view.peers, (peer) => peer.name, (peer) => make("option", {}, peer.name),
      (option, peer) => { option.value = String(view.peers.indexOf(peer)); });
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

  function changeChart(element, [title, unit, labels]) {
    const columns = labels.map((label) => 1 + history.columns.findIndex((column) => column.label === label));
    const up = 1 + history.columns.findIndex((column) => column.label === "link up");
    const svg = element.querySelector("svg");
    const {width, height} = svg.getBoundingClientRect();
    if (width === 0) return;
    const left = 62, right = 6, top = 8, bottom = 20;
    const end = Math.max(history.uptime_seconds, 1), begin = Math.max(end - span, 0);
    const points = spaced(history.points.filter((point) => point[0] >= begin), (end - begin) / POINTS_DRAWN);
    const most = Math.max(...points.map((point) => Math.max(...columns.map((n) => point[n] ?? 0))), 0);
    const high = ceiling(most > 0 ? most : 1);
    const x = (at) => left + (at - begin) / Math.max(end - begin, 1) * (width - left - right);
    const y = (value) => height - bottom - value / high * (height - top - bottom);
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
    });
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
    const shown = pointer === null ? points.at(-1) : near;
    const told = labels.map((label, n) => `${label} ${scaled(shown ? shown[columns[n]] : null, unit)}`);
    svg.setAttribute("aria-label", `${title}: ${told.join(", ")}`);
    sync(element.querySelector("ul"), labels, (label) => label,
      (label) => make("li", {title: helpOf(history.columns[columns[labels.indexOf(label)] - 1].name)},
        make("i", {className: "s" + labels.indexOf(label)}), make("span")),
      (item, label) => say(item.querySelector("span"), told[labels.indexOf(label)]));
  }

  function draw() {
    byId("drawings").hidden = history === null;
    if (history !== null) sync(byId("charts"), CHARTS, ([title]) => title, newChart, changeChart);
  }

  function choose(seconds) {
    span = seconds;
    byId("short").setAttribute("aria-pressed", String(seconds === 300));
    byId("long").setAttribute("aria-pressed", String(seconds === 3600));
    say(byId("span-name"), seconds === 300 ? "five minutes" : "hour");
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

  byId("short").addEventListener("click", () => choose(300));
  byId("long").addEventListener("click", () => choose(3600));
  byId("peer").addEventListener("change", (event) => {
    chosen = Number(event.target.value);
    remember();
  });
  addEventListener("resize", draw);
  look();
  // The drawings are of now: beside figures of another instant they would mislead.
  if (fixed === null) keepRemembering();
})();
