"use strict";
// The report's views. Data: #facts is JSON (tables.summary and html_report.py); #pages is what
// page_map.js, which comes before this, unpacks.

const $ = id => document.getElementById(id);
const facts = JSON.parse($("facts").textContent);

function element(kind, options = {}, ...children) {
    const made = document.createElement(kind);
    for (const [key, value] of Object.entries(options)) {
        if (key === "class") made.className = value;
        else if (key === "style") made.style.cssText = value;
        else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
        else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
}

const percent = (share, digits = 1) => share == null ? "–" : (100 * share).toFixed(digits) + " %";
function scaled(count, units) {
    if (count == null) return "–";
    const step = units === bytesUnits ? 1024 : 1000;
    let at = 0;
    while (count >= step && at + 1 < units.length) { count /= step; ++at; }
    return (at === 0 || count >= 100 ? count.toFixed(0) : count.toFixed(1)) + units[at];
}
const bytesUnits = [" B", " KiB", " MiB", " GiB", " TiB"];
const number = count => scaled(count, ["", " k", " M", " G", " T"]);
const bytes = count => scaled(count, bytesUnits);
const quality = (share, good, fair) =>
    share == null ? "" : share >= good ? "good" : share >= fair ? "fair" : "bad";
const dark = matchMedia("(prefers-color-scheme: dark)");

// Neighbouring threads get colours that differ: hues by the golden angle.
function threadColor(thread) {
    return thread < 0 ? "#888888" : hsl((215 + thread * 137.508) % 360, 0.62, dark.matches ? 0.6 : 0.48);
}
function hsl(hue, saturation, light) {
    const part = n => {
        const k = (n + hue / 30) % 12;
        const value = light - saturation * Math.min(light, 1 - light) *
            Math.max(-1, Math.min(k - 3, 9 - k, 1));
        return Math.round(255 * value).toString(16).padStart(2, "0");
    };
    return "#" + part(0) + part(8) + part(4);
}
function showTip(event, text) {
    const tip = $("tip");
    if (!text) { tip.style.display = "none"; return; }
    tip.textContent = text;
    tip.style.display = "block";
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 4)) + "px";
    tip.style.top = (event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18) + "px";
}

// On narrow screens a cell says itself what it is of.
function titled(cell, title) {
    cell.dataset.title = title;
    return cell;
}

const threadLabel = (data, thread) => thread < 0 ? "unknown" : data.threads.thread[thread];

// Overview

function card(value, title, note, kind = "") {
    return element("div", {class: "card"}, element("span", {}, title),
                   element("b", {class: kind}, value), element("span", {}, note));
}
function cards(data) {
    const program = data.program, balance = data.balance, made = [];
    if (data.has_counts) {
        made.push(card(percent(program.locality), "Locality", "accesses by the thread of the first touch",
                       quality(program.locality, 0.8, 0.5)),
                  card(percent(program.correctness), "First touch correct",
                       number(program.wrong) + " of " + number(program.used) + " pages are wrong",
                       quality(program.correctness, 0.95, 0.8)),
                  card(percent(program.exclusivity), "Exclusivity", "what locality could be"),
                  card(percent(program.shared), "Shared pages", (program.sharers || 0).toFixed(1) + " threads a page"));
    }
    if (balance.imbalance != null) {
        made.push(card(percent(balance.imbalance), "Load imbalance λ",
                       "of " + balance.of + ", variance " + balance.variance.toExponential(1)));
    }
    made.push(card(bytes(program.bytes), "Memory", number(program.units) + " units of " + bytes(data.granularity)));
    return made;
}
function overview() {
    $("command").textContent = facts.title;
    document.title = "Memory locality: " + facts.title;
    $("facts-line").textContent = facts.mode + " recording, " + facts.processes.length +
        (facts.processes.length === 1 ? " process, " : " processes, ") + facts.threads.thread.length + " threads" +
        (facts.has_counts ? "" : "; first touches only: accesses are not known");
    $("cards").append(...cards(facts));
    for (const change of facts.advice) {
        if (change.kind === "minor") {
            $("advice").append(element("li", {class: "minor"}, change.text));
            continue;
        }
        const title = change.structure == null ? "ranks instead of threads" : change.structure;
        const gain = change.kind === "sharing" ? " " + number(change.remote) + " contended accesses" :
            change.locality_gain == null ? "" : " locality +" + (100 * change.locality_gain).toFixed(1) +
            " points, wrong first touches " + (-100 * change.wrong_gain).toFixed(1) + " points";
        const place = change.index >= 0 ? facts.structures.location[change.index] : "";
        $("advice").append(element("li", {}, element("b", {}, title), place ? ", " : "",
            place ? placeLink(change.index) : "", " ", element("span", {class: "gain"}, gain), element("br"),
            change.cause + ": " + change.text + "."));
    }
    if (facts.nothing) $("advice").replaceWith(element("p", {}, facts.nothing));
    // (A recording may be compared with itself.)
    const damage = new Set([...facts.damage, ...(facts.after ? facts.after.damage : [])].map(one =>
        `${one.path} ${one.what}; lost: ${one.lost}`));
    $("damage").hidden = damage.size === 0;
    $("damage").querySelector("ul").append(...[...damage].map(text => element("li", {}, text)));
    $("warnings").append(...facts.warnings.map(text => element("li", {}, text)));
}
function placeLink(index) {
    const table = facts.structures, place = table.location[index];
    if (!table.line[index] || !facts.sources[table.file[index]]) return place;
    return element("a", {href: "#source", onclick: event => {
        event.preventDefault();
        showSource(table.file[index], table.line[index]);
        $("source").scrollIntoView();
    }}, place);
}

// Structures

let sortedBy = "remote", descending = true;
function structureTable() {
    const table = facts.structures, counts = facts.has_counts;
    const columns = [["name", "name", true], ["bytes", "size"]];
    if (counts) columns.push(["accesses", "accesses"], ["locality", "locality"], ["correctness", "correct"],
                             ["exclusivity", "exclusive"], ["sharers", "threads"], ["remote", "remote"]);
    columns.push(["touches", "first touch by", true], ["location", "allocated", true]);
    if (!counts && sortedBy === "remote") sortedBy = "bytes";
    const words = $("filter").value.toLowerCase();
    let rows = table.name.map((_, index) => index).filter(index =>
        (table.name[index] + " " + table.location[index]).toLowerCase().includes(words));
    const key = index => sortedBy === "touches" ? (table.touches[index][0] || [0, 0])[0] : table[sortedBy][index];
    rows.sort((one, other) => {
        const a = key(one), b = key(other);
        const order = a == null ? (b == null ? 0 : 1) : b == null ? -1 : a < b ? -1 : a > b ? 1 : 0;
        return a == null || b == null ? order : descending ? -order : order;
    });
    $("structure-count").textContent = rows.length + " of " + table.name.length;
    const head = element("tr", {}, ...columns.map(([name, label, text]) => element("th", {
        class: text ? "text" : "", "aria-sort": sortedBy === name ? (descending ? "descending" : "ascending") : "none"},
        element("button", {onclick: () => {
            descending = sortedBy === name ? !descending : !text;
            sortedBy = name;
            structureTable();
        }}, label + (sortedBy === name ? (descending ? " ↓" : " ↑") : "")))));
    const body = element("tbody");
    for (const index of rows.slice(0, 500)) {
        const cell = name => {
            switch (name) {
            case "name": return element("td", {class: "text"},
                element("button", {class: "name", title: "show its pages", onclick: () => showStructure(index)}, table.name[index]),
                element("small", {}, table.reason[index] || ""));
            case "bytes": return element("td", {}, bytes(table.bytes[index]));
            case "locality": return element("td", {class: quality(table.locality[index], 0.8, 0.5)}, percent(table.locality[index]));
            case "correctness": return element("td", {class: quality(table.correctness[index], 0.95, 0.8)}, percent(table.correctness[index]));
            case "exclusivity": return element("td", {}, percent(table.exclusivity[index]));
            case "sharers": return element("td", {}, table.sharers[index] == null ? "–" : table.sharers[index].toFixed(1));
            case "touches": return touchCell(index);
            case "location": return element("td", {class: "text", title: table.file[index] || ""}, placeLink(index),
                element("small", {}, table.function[index] || ""));
            default: return element("td", {}, number(table[name][index]));
            }
        };
        body.append(element("tr", {}, ...columns.map(([name, label]) => titled(cell(name), label))));
    }
    $("structure-table").replaceChildren(element("thead", {}, head), body);
}
function touchCell(index) {
    const touches = facts.structures.touches[index];
    const all = facts.structures.units[index] || 1;
    const bar = element("span", {class: "bar"}, ...touches.map(([thread, count]) =>
        element("i", {style: `width:${100 * count / all}%;background:${threadColor(thread)}`})));
    const text = touches.map(([thread, count]) => threadLabel(facts, thread) + " " + percent(count / all, 0)).join(", ");
    const cell = element("td", {class: "text"}, bar, " " + (touches.length ? threadLabel(facts, touches[0][0]) : ""));
    cell.addEventListener("pointermove", event => showTip(event, text));
    cell.addEventListener("pointerleave", () => showTip());
    return cell;
}

let pageMap = null;
function showStructure(index) {
    if (!pageMap) return;
    const range = facts.pages.ranges.findIndex(one => one[0] === index);
    if (range < 0) return;
    pageMap.choice.value = range;
    pageMap.show(facts.pages.ranges[range][1], facts.pages.ranges[range][2]);
    $("pages-view").scrollIntoView();
}

// Threads

function threads() {
    const table = facts.threads, balance = facts.balance;
    const key = {"instructions": "instructions", "processor time": "cpu_ns"}[balance.of] || "accesses";
    const loads = table[key], most = Math.max(...loads, 1);
    $("balance").textContent = balance.imbalance == null ? "The loads of the threads are not known." :
        `λ = ${percent(balance.imbalance)} of ${balance.of}, variance ${balance.variance.toExponential(2)}, ${balance.threads} working threads`;
    const shown = loads.length > 256 ? 256 : loads.length;
    for (let thread = 0; thread < shown; ++thread) {
        const value = key === "cpu_ns" ? (loads[thread] / 1e9).toFixed(3) + " s" : number(loads[thread]);
        $("loads").append(element("span", {}, table.thread[thread] + (table.works[thread] ? "" : " (helper)")),
            element("div", {class: "track"}, element("i", {"data-thread": thread, style: `width:${100 * loads[thread] / most}%;background:${threadColor(thread)}`})),
            element("span", {}, value));
    }
    if (shown < loads.length) $("loads").append(element("span", {}, `and ${loads.length - shown} more`));
    if (facts.communication) communication();
}
function communication() {
    const matrix = facts.communication, size = matrix.length;
    const most = Math.max(...matrix.map(row => row.reduce((a, b) => Math.max(a, b), 0)), 1);
    const canvas = element("canvas", {role: "img", "aria-label": "Communication between threads"});
    const cell = Math.max(1, Math.floor(460 / size));
    canvas.width = canvas.height = size * cell;
    let logarithmic = true;
    const draw = () => {
        const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
        const pixels = new Uint32Array(image.data.buffer);
        for (let y = 0; y < canvas.height; ++y) {
            const row = matrix[Math.floor(y / cell)];
            for (let x = 0; x < canvas.width; ++x) {
                const value = row[Math.floor(x / cell)];
                const share = logarithmic ? Math.log1p(value) / Math.log1p(most) : value / most;
                pixels[y * canvas.width + x] = heatTable[Math.ceil(share * 255)];
            }
        }
        context.putImageData(image, 0, 0);
    };
    const format = facts.communication_recorded ? bytes : number, title = facts.communication_recorded ? "bytes" : "accesses";
    let scale = heatScale(most, title, format);
    const toggle = element("button", {onclick: () => {
        logarithmic = !logarithmic;
        toggle.textContent = logarithmic ? "logarithmic" : "linear";
        const other = heatScale(most, title, format, logarithmic);
        scale.replaceWith(other);
        scale = other;
        draw();
    }}, "logarithmic");
    // Labels that can be read where the matrix is 280 pixels wide, as on a phone.
    const names = shortened(facts.threads.thread), each = 280 / size;
    const labels = (kind, side, need) => {
        const step = labelStep(each, need), made = element("div", {class: kind, "aria-hidden": "true"}, element("em", {}, longest(names)));
        for (let thread = 0; thread < size; thread += step) {
            if (thread && (size - thread) * each < need / 2) break; // would stand out beyond the edge
            made.append(element("span", {style: `${side}:${100 * (thread + 0.5) / size}%`}, names[thread]));
        }
        return made;
    };
    canvas.addEventListener("pointermove", event => {
        const box = canvas.getBoundingClientRect();
        const at = part => Math.max(0, Math.min(size - 1, Math.floor(part * size)));
        const row = at((event.clientY - box.top) / box.height), column = at((event.clientX - box.left) / box.width);
        showTip(event, `${threadLabel(facts, row)} ${facts.communication_recorded ? "to" : "and"} ${threadLabel(facts, column)}: ` +
            format(matrix[row][column]));
    });
    canvas.addEventListener("pointerleave", () => showTip());
    $("communication").append(element("h3", {}, "Communication between threads"),
        element("div", {class: "tools"}, toggle, element("span", {class: "quiet"}, facts.communication_of)),
        element("div", {class: "cross"}, labels("columns", "left", 10 + 7 * longest(names).length), labels("gutter", "top", 14), canvas),
        scale);
    draw();
    redraws.push(draw);
}

// Source

function showSource(path, line) {
    const source = facts.sources[path];
    if (!source) return;
    $("files").value = path;
    const numbers = Object.keys(source.marks).map(Number).sort((one, other) => one - other);
    $("marks").replaceChildren(...numbers.map(at => element("option", {value: at},
        `line ${at}: ${source.marks[at].map(mark => mark[1]).slice(0, 2).join(", ")}`)));
    if (!source.there) {
        $("code").replaceChildren(element("p", {class: "quiet", style: "padding:0 14px"},
            `${path} was not there when the report was made. Marked lines: ${numbers.join(", ")}`));
        return;
    }
    let before = 0;
    const lines = source.lines.map(([at, text]) => {
        const marks = source.marks[at] || [];
        const row = element("div", {class: marks.length ? "marked" : "", id: "line-" + at},
            element("span", {class: "n"}, at === before + 1 ? String(at) : "⋮ " + at), text || " ");
        before = at;
        const touches = marks.filter(mark => mark[0] !== "allocated"), made = marks.filter(mark => mark[0] === "allocated");
        if (made.length) row.append(element("em", {}, "◂ allocates " + [...new Set(made.map(mark => mark[1]))].join(", ")));
        if (touches.length) row.append(element("em", {class: "touch"}, "◂ touches first " + touches.slice(0, 3).map(mark => mark[1]).join(", ")));
        return row;
    });
    $("code").replaceChildren(...lines);
    goTo(line || numbers[0]);
}
function goTo(line) {
    const row = $("line-" + line);
    if (!row) return;
    document.querySelectorAll("#code .now").forEach(one => one.classList.remove("now"));
    row.classList.add("now");
    $("marks").value = line;
    $("code").scrollTop = row.offsetTop - $("code").offsetTop - $("code").clientHeight / 3;
}
function sources() {
    const paths = Object.keys(facts.sources);
    if (!paths.length) {
        $("source").querySelector(".tools").remove();
        $("code").replaceWith(element("p", {class: "quiet"}, "No place in the source is known: build with -g, and see the notes above."));
        return;
    }
    $("files").append(...paths.map(path => element("option", {value: path, title: path}, facts.sources[path].name)));
    $("files").addEventListener("change", () => showSource($("files").value));
    $("marks").addEventListener("change", () => goTo($("marks").value));
    const best = facts.structures.file.find(path => facts.sources[path]);
    showSource(best || paths[0]);
}

// Cache lines

function bytesIn(text) { // "0-7, 16"
    return text ? text.split(", ").flatMap(part => {
        const [first, last] = part.split("-").map(Number);
        return Array.from({length: (last ?? first) - first + 1}, (_, index) => first + index);
    }) : [];
}
function lineBytes(line) {
    const cells = Array.from({length: 64}, () => ({readers: [], writers: []}));
    for (const use of line.uses) {
        for (const at of bytesIn(use.read)) cells[at].readers.push(use.thread);
        for (const at of bytesIn(use.written)) cells[at].writers.push(use.thread);
    }
    const strip = element("div", {class: "line-bytes", role: "img", "aria-label": "bytes of the line"});
    cells.forEach(({readers, writers}, at) => {
        const cell = element("i", {});
        const threads = new Set([...readers, ...writers]);
        if (writers.length && threads.size > 1) cell.className = "striped";
        else if (writers.length) {
            cell.dataset.thread = writers[0];
            cell.style.background = threadColor(writers[0]);
        }
        else if (readers.length) cell.style.background = `color-mix(in srgb, ${threadColor(readers[0])} 35%, transparent)`;
        const names = list => list.map(thread => threadLabel(facts, thread)).join(", ");
        const text = `byte ${at}` + (writers.length ? `, written by ${names(writers)}` : "") +
            (readers.length ? `, read by ${names(readers)}` : "");
        cell.addEventListener("pointermove", event => showTip(event, text));
        cell.addEventListener("pointerleave", () => showTip());
        strip.append(cell);
    });
    return strip;
}
function cacheLines() {
    if (!facts.lines || !facts.lines.length) { $("lines").remove(); return; }
    $("line-list").append(table(["structure", "offset", "contended", "shared", "bytes", "by"], facts.lines.map(line => [
        line.structure, line.offset == null ? "0x" + line.address : "+" + line.offset, number(line.contended),
        line.falsely ? "falsely" : "truly", element("td", {class: "wide"}, lineBytes(line)),
        element("td", {class: "text long wide"}, line.uses.slice(0, 6).map(use => threadLabel(facts, use.thread) +
            (use.written ? " writes " + use.written : " reads " + use.read) + (use.place ? ` (${use.place})` : "")).join("; ") +
            (line.uses.length > 6 ? ` and ${line.uses.length - 6} more` : ""))]), "cards"));
}

// On another machine; before and after

function table(head, rows, className = "") {
    return element("div", {class: "scroll"}, element("table", {class: className},
        element("thead", {}, element("tr", {}, ...head.map((text, index) => element("th", {
            class: index && !(rows[0] && rows[0][index] instanceof Node && rows[0][index].matches(".text, .wide")) ? "" : "text"}, text)))),
        element("tbody", {}, ...rows.map(row => element("tr", {}, ...row.map((cell, index) => titled(
            cell instanceof Node ? cell : element("td", {class: index ? "" : "text"}, cell), head[index])))))));
}
function listText(numbers) {
    const last = numbers[numbers.length - 1];
    return numbers.length > 1 && last - numbers[0] + 1 === numbers.length ? `${numbers[0]}–${last}` :
        numbers.slice(0, 6).join(",") + (numbers.length > 6 ? "…" : "");
}
function whatIf() {
    const data = facts.what_if;
    if (!data) { $("elsewhere").remove(); return; }
    $("what-if").append(element("p", {class: "quiet"}, `${data.machine}, threads placed ${data.placement}; latencies and bandwidths: ${data.origin}; pages are placed one by one but where it says huge`),
        table(["pages", "local accesses", "mean latency", "latency cost", "bandwidth cost", "imbalance of nodes"],
              data.results.map(one => [one.policy, percent(one.local_share), one.mean_latency_ns.toFixed(0) + " ns",
                  one.latency_cost_s.toPrecision(3) + " s", one.bandwidth_cost_s.toPrecision(3) + " s", percent(one.imbalance, 0)]), "cards"));
    for (const one of data.results) {
        const total = one.traffic.flat().reduce((a, b) => a + b, 0) || 1;
        $("what-if").append(element("h3", {}, one.policy + ": accesses from processors to nodes"),
            table(["processors", ...data.nodes.map(node => "node " + node)], one.traffic.map((row, index) =>
                [listText(data.localities[index]), ...row.map(value => element("td", {
                    style: `background:color-mix(in srgb, var(--accent) ${(60 * value / total).toFixed(0)}%, transparent)`},
                    percent(value / total)))]), "matrix"));
    }
}
async function comparison() {
    const after = facts.after;
    if (!after) { $("comparison").remove(); return; }
    const points = (one, other, better) => {
        if (one == null || other == null) return element("td", {}, "–");
        const change = Math.round(1000 * (other - one)) / 10 || 0; // nothing has no sign
        return element("td", {class: better * change > 0 ? "good" : better * change < 0 ? "bad" : ""},
                       (change > 0 ? "+" : "") + change.toFixed(1));
    };
    const line = (name, one, other, better) => [name, percent(one), percent(other), points(one, other, better)];
    const a = facts.program, b = after.program;
    $("compared").append(table(["program", "before", "after", "points"], [
        line("locality", a.locality, b.locality, 1), line("first touch correct", a.correctness, b.correctness, 1),
        line("exclusivity", a.exclusivity, b.exclusivity, 1),
        line("load imbalance", facts.balance.imbalance, after.balance.imbalance, -1)]));
    const rows = [], counts = facts.has_counts && after.has_counts;
    const mainTouch = (data, index) => {
        const [first] = data.structures.touches[index];
        return first ? threadLabel(data, first[0]) + " " + percent(first[1] / data.structures.units[index], 0) : "–";
    };
    facts.structures.name.forEach((name, index) => {
        const other = after.structures.name.indexOf(name);
        if (rows.length >= 40 || !facts.structures.named[index]) return;
        const cells = counts ? (data, at) => percent(data.structures.locality[at]) : mainTouch;
        rows.push([name, cells(facts, index), other < 0 ? "not there" : cells(after, other),
                   counts ? points(facts.structures.locality[index], other < 0 ? null : after.structures.locality[other], 1) : ""]);
    });
    $("compared").append(element("h3", {}, counts ? "Locality of structures" : "Most first touches by"),
        table(["structure", "before", "after", counts ? "points" : ""], rows),
        element("h3", {}, "Pages after: " + after.title));
    const pages = await unpack("pages_after", after);
    if (pages) redraws.push(bindDraw(new PageMap($("compared"), after, pages)));
}

// All together

const redraws = [];
const bindDraw = map => () => map.draw();
function navigation() {
    const links = new Map();
    for (const section of document.querySelectorAll("main section")) {
        const link = element("a", {href: "#" + section.id}, section.querySelector("h2").textContent);
        links.set(section, link);
        $("views").append(link);
    }
    const update = () => {
        // The one that begins at the top, or else that has the first third of what one sees.
        const head = document.querySelector("header").offsetHeight, third = head + (innerHeight - head) / 3;
        const top = section => section.getBoundingClientRect().top, all = [...links.keys()];
        const asked = all.find(section => "#" + section.id === location.hash);
        let here = all.find(section => Math.abs(top(section) - head) < 40) || all.filter(section => top(section) < third).pop();
        // Those at the end cannot come up there: the one that was asked for, or else that takes the most room.
        if (innerHeight + scrollY >= document.documentElement.scrollHeight - 4) {
            const seen = section => section.getBoundingClientRect().bottom - Math.max(top(section), head);
            here = asked && top(asked) >= head ? asked : all.reduce((a, b) => seen(b) > seen(a) ? b : a);
        }
        here = here || all[0];
        for (const [section, link] of links) link.classList.toggle("here", section === here);
        $("views").scrollLeft = links.get(here).offsetLeft - $("views").offsetLeft - 60; // on narrow screens
    };
    addEventListener("scroll", update, {passive: true});
    addEventListener("hashchange", update);
    new ResizeObserver(update).observe(document.querySelector("main"));
    update();
}
async function main() {
    fillHeatTable();
    overview();
    structureTable();
    $("filter").addEventListener("input", structureTable);
    cacheLines();
    threads();
    sources();
    whatIf();
    if (!facts.after) $("comparison").remove();
    navigation();
    const pages = await unpack("pages", facts);
    if (pages) {
        pageMap = new PageMap($("heat"), facts, pages);
        redraws.push(bindDraw(pageMap));
    } else {
        $("heat").append(element("p", {class: "quiet"}, "The recording has no pages."));
    }
    if (facts.after) await comparison();
    dark.addEventListener("change", () => {
        fillHeatTable();
        structureTable();
        for (const one of document.querySelectorAll("[data-thread]")) one.style.background = threadColor(+one.dataset.thread);
        redraws.forEach(draw => draw());
    });
    document.body.dataset.ready = "yes";
}
main();
