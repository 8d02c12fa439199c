"use strict";
// The map of pages and threads, and its data: base64 of deflated columns, little-endian, a row each
// for a page or for `per_row` of them:
//     u32 page number, low and high half; u32 structure, first thread, main thread (-1: unknown), each as
//     the difference to the row before; u8 share of wrong first touches; then for each thread u8
//     accesses, on a logarithmic scale to 254 for the most (0: none)

// Nothing is nearly the background; then each step stands out more from it: on dark from blue over violet to
// yellow, on light from yellow over violet to nearly black.
const heatStops = {
    dark: [[46, 50, 116], [96, 52, 150], [172, 58, 134], [230, 94, 84], [250, 160, 62], [252, 240, 150]],
    light: [[250, 220, 130], [250, 174, 66], [238, 104, 62], [204, 40, 104], [118, 26, 140], [28, 18, 70]]};
const heatTable = new Uint32Array(256);
function fillHeatTable() {
    const stops = heatStops[dark.matches ? "dark" : "light"];
    for (let value = 1; value < 256; ++value) {
        const place = value / 255 * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
        const mix = i => Math.round(stops[low][i] + (stops[low + 1][i] - stops[low][i]) * (place - low));
        heatTable[value] = (255 << 24 | mix(2) << 16 | mix(1) << 8 | mix(0)) >>> 0;
    }
    heatTable[0] = dark.matches ? 0xff221c1a : 0xffecedf0;
    document.documentElement.style.setProperty("--nothing", dark.matches ? "#1a1c22" : "#f0edec");
    document.documentElement.style.setProperty("--heat", `linear-gradient(90deg, ${stops.map(rgb => `rgb(${rgb})`)})`);
}
// The bar of colours up to `most`, with as many numbers as can be read; 0 is the background, beside it.
function heatScale(most, title, format, logarithmic = true) {
    const place = value => logarithmic ? Math.log1p(value) / Math.log1p(most) : value / most;
    let numbers = [0, most / 2, most];
    if (logarithmic) {
        const decades = Math.floor(Math.log10(most)), step = Math.ceil((decades + 1) / 4) || 1;
        numbers = [0];
        for (let power = step - 1; power <= decades; power += step) if (place(10 ** power) < 0.84) numbers.push(10 ** power);
        numbers = numbers.filter((value, index) => !index || place(value) > 0.1).concat(most);
    }
    return element("div", {class: "scale"}, element("span", {}, title), element("div", {class: "bar-of-colours"}, element("i", {}),
        ...numbers.map(value => element("b", {style: value ? `left:${100 * place(value)}%` : "left:-8px"}, format(value)))));
}
// Every how many threads have labels that take `need` of the place, where a thread takes `each`.
function labelStep(each, need) {
    let step = 1;
    while (step * each < need) step *= 2;
    return step;
}
// The end of a long name, which has the thread's number.
const shortened = names => names.map(name => name.length > 16 ? "…" + name.slice(-15) : name);
const longest = texts => texts.reduce((a, b) => b.length > a.length ? b : a, "");
const packed = color => {
    const value = parseInt(color.slice(1), 16);
    return (255 << 24 | (value & 255) << 16 | value & 0xff00 | value >> 16) >>> 0;
};

async function unpack(id, data) {
    const rows = data.pages.rows, threads = data.threads.thread.length;
    if (!rows) return null;
    const text = $(id).textContent;
    $(id).textContent = "";
    const raw = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
    const buffer = await new Response(stream).arrayBuffer();
    const column = index => {
        const values = new Uint32Array(buffer, 4 * rows * index, rows);
        for (let row = 1; row < rows; ++row) values[row] += values[row - 1];
        return values;
    };
    const columns = [0, 1, 2, 3, 4].map(column);
    return {rows, threads, low: columns[0], high: columns[1], structure: columns[2],
            first: new Int32Array(columns[3].buffer, columns[3].byteOffset, rows),
            best: new Int32Array(columns[4].buffer, columns[4].byteOffset, rows),
            wrong: new Uint8Array(buffer, 20 * rows, rows), heat: new Uint8Array(buffer, 21 * rows)};
}

class PageMap {
    constructor(place, data, pages) {
        Object.assign(this, {data, pages, begin: 0, end: pages.rows});
        this.canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": "Accesses by page and thread"});
        this.gutter = element("div", {class: "gutter", "aria-hidden": "true"});
        const names = data.structures.name;
        this.choice = element("select", {"aria-label": "Structure", onchange: () => this.chosen()},
            element("option", {value: -1}, "all structures"),
            ...data.pages.ranges.slice(0, 1000).map(([structure], index) => element("option", {value: index}, names[structure])));
        const button = (text, label, action) => element("button", {"aria-label": label, title: label, onclick: action}, text);
        this.place = element("span", {class: "quiet"});
        place.append(element("div", {class: "tools"}, this.choice,
            button("+", "closer", () => this.zoom(0.5)), button("−", "further away", () => this.zoom(2)),
            button("all", "all pages", () => this.show(0, pages.rows)), this.place),
            element("div", {class: "map"}, this.gutter, element("div", {class: "plot"}, this.canvas)), this.legend());
        this.pointers = new Map();
        this.listen();
        new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    }
    legend() {
        const made = element("div", {class: "legend"});
        const threads = this.data.threads.thread;
        threads.slice(0, 24).forEach((label, thread) => made.append(element("span", {},
            element("i", {"data-thread": thread, style: `background:${threadColor(thread)}`}), label)));
        if (threads.length > 24) made.append(`and ${threads.length - 24} more`);
        // Threads have all hues: what is wrong has none.
        made.append(element("span", {}, element("i", {class: "wrong", style: "background:var(--wrong)"}), "wrong first touch"));
        const {per_row: per, most} = this.data.pages;
        if (per > 1) made.append(element("span", {}, element("i", {style: "background:var(--partly-wrong)"}), "of less than half of the pages"));
        return element("div", {}, this.data.has_counts && most ?
            heatScale(most, per > 1 ? `accesses of a thread to ${per} pages` : "accesses of a thread to a page", number) : "", made);
    }
    chosen() {
        const range = this.data.pages.ranges[this.choice.value];
        if (range) this.show(range[1], range[2]); else this.show(0, this.pages.rows);
    }
    show(begin, end) {
        const wide = Math.max(Math.min(end - begin, this.pages.rows), Math.min(8, this.pages.rows));
        this.begin = Math.max(0, Math.min(begin, this.pages.rows - wide));
        this.end = this.begin + wide;
        const chosen = this.data.pages.ranges[this.choice.value];
        if (chosen && (chosen[1] < this.begin || this.end < chosen[2])) this.choice.value = -1;
        if (chosen && wide > 2 * Math.max(chosen[2] - chosen[1], 8)) this.choice.value = -1;
        this.request();
    }
    zoom(factor, at = 0.5) {
        const wide = this.end - this.begin, fixed = this.begin + at * wide;
        this.show(fixed - at * wide * factor, fixed + (1 - at) * wide * factor);
    }
    request() {
        if (this.waiting) return;
        this.waiting = true;
        requestAnimationFrame(() => { this.waiting = false; this.draw(); });
    }
    draw() {
        const ratio = Math.min(devicePixelRatio || 1, 2), css = this.canvas.parentElement.clientWidth;
        if (!css) return;
        const wide = Math.round(css * ratio), threads = this.pages.threads;
        const lane = Math.max(Math.min(Math.floor(320 * ratio / threads), 26 * ratio), 1);
        const strip = Math.round(14 * ratio), gap = Math.round(4 * ratio);
        const heatTop = strip + gap, heatHigh = Math.round(lane) * threads;
        const high = heatTop + heatHigh + 3 * (strip + gap);
        Object.assign(this, {ratio, lane: Math.round(lane), heatTop, heatHigh, strip, gap});
        this.canvas.width = wide;
        this.canvas.height = high;
        this.canvas.style.height = high / ratio + "px";
        const context = this.canvas.getContext("2d"), image = context.createImageData(wide, high);
        const pixels = new Uint32Array(image.data.buffer);
        const colors = new Map(), color = thread => {
            if (!colors.has(thread)) colors.set(thread, packed(threadColor(thread)));
            return colors.get(thread);
        };
        const {rows, heat, first, best, wrong, structure} = this.pages, span = this.end - this.begin;
        const values = new Uint8Array(threads), calm = heatTable[0], style = getComputedStyle(document.documentElement);
        const [all, partly] = ["--wrong", "--partly-wrong"].map(name => packed(style.getPropertyValue(name).trim()));
        const fill = (x, top, size, value) => {
            for (let y = top; y < top + size; ++y) pixels[y * wide + x] = value;
        };
        for (let x = 0; x < wide; ++x) {
            const low = Math.min(Math.floor(this.begin + x * span / wide), rows - 1);
            const top = Math.max(Math.min(Math.floor(this.begin + (x + 1) * span / wide), rows), low + 1);
            for (let thread = 0; thread < threads; ++thread) {
                let most = 0;
                for (let at = thread * rows + low, end = thread * rows + top; at < end; ++at) {
                    if (heat[at] > most) most = heat[at];
                }
                values[thread] = most;
                fill(x, heatTop + thread * this.lane, this.lane, heatTable[most]);
            }
            let worst = 0;
            for (let row = low; row < top; ++row) if (wrong[row] > worst) worst = wrong[row];
            const middle = (low + top - 1) >> 1, below = heatTop + heatHigh + gap;
            fill(x, 0, strip, structure[low] % 2 ? packed(dark.matches ? "#4a5568" : "#b9c0cc") : packed(dark.matches ? "#2f3745" : "#d9dde4"));
            fill(x, below, strip, color(first[middle]));
            fill(x, below + strip + gap, strip, this.data.has_counts ? color(best[middle]) : calm);
            fill(x, below + 2 * (strip + gap), strip, worst > 127 ? all : worst > 0 ? partly : calm);
        }
        context.putImageData(image, 0, 0);
        this.labels(context, wide);
        this.nameRows();
        const per = this.data.pages.per_row;
        this.place.textContent = `pages ${number(Math.floor(this.begin) * per)} to ${number(Math.ceil(this.end) * per)}` +
            (per > 1 ? `, ${per} in each column` : "");
    }
    labels(context, wide) {
        const span = this.end - this.begin, size = Math.round(10 * this.ratio);
        context.font = `${size}px system-ui, sans-serif`;
        context.textBaseline = "middle";
        context.fillStyle = dark.matches ? "#e6e7ea" : "#1d1f24";
        for (const [structure, begin, end] of this.data.pages.ranges) {
            const left = Math.max((begin - this.begin) / span * wide, 0), right = Math.min((end - this.begin) / span * wide, wide);
            const text = this.data.structures.name[structure], room = right - left - 6 * this.ratio;
            if (room > 20 * this.ratio) {
                context.save();
                context.beginPath();
                context.rect(left, 0, right - left, this.strip);
                context.clip();
                context.fillText(text, left + 4 * this.ratio, this.strip / 2 + 1);
                context.restore();
            }
        }
    }
    // Names of the rows, beside them so that nothing covers the data.
    nameRows() {
        const {ratio, lane, heatTop, heatHigh, strip, gap} = this, names = shortened(this.data.threads.thread);
        const key = [ratio, lane, heatTop].join();
        if (this.named === key) return;
        this.named = key;
        const at = (text, middle, kind) => element("span", {class: kind, style: `top:${middle / ratio}px`}, text);
        const strips = ["first touch", "main user", "wrong"], step = labelStep(lane / ratio, 12), made = [];
        for (let thread = 0; thread < names.length; thread += step) {
            made.push(at(names[thread], heatTop + (thread + 0.5) * lane, "thread"));
        }
        strips.forEach((text, index) => made.push(at(text, heatTop + heatHigh + gap + index * (strip + gap) + strip / 2, "strip")));
        this.gutter.replaceChildren(element("em", {}, longest([...names, ...strips])), ...made);
    }
    rowAt(event) {
        const box = this.canvas.getBoundingClientRect();
        const row = Math.floor(this.begin + (event.clientX - box.left) / box.width * (this.end - this.begin));
        return Math.max(0, Math.min(row, this.pages.rows - 1));
    }
    tell(event) {
        const row = this.rowAt(event), {low, high, structure, first, best, heat, rows, threads} = this.pages;
        const page = (BigInt(high[row]) << 32n) + BigInt(low[row]);
        const scale = Math.log1p(this.data.pages.most) / 254;
        const lines = [this.data.structures.name[structure[row]], "0x" + (page * BigInt(this.data.granularity)).toString(16),
                       "touched first by " + threadLabel(this.data, first[row])];
        if (this.data.has_counts && best[row] >= 0) lines.push("used most by " + threadLabel(this.data, best[row]));
        const used = [];
        for (let thread = 0; thread < threads; ++thread) {
            const value = heat[thread * rows + row];
            if (value) used.push([value, threadLabel(this.data, thread) + " ≈ " + number(Math.expm1(value * scale))]);
        }
        used.sort((one, other) => other[0] - one[0]);
        lines.push(...used.slice(0, 8).map(one => one[1]));
        if (used.length > 8) lines.push(`and ${used.length - 8} more threads`);
        showTip(event, lines.join("\n"));
    }
    listen() {
        const canvas = this.canvas, box = () => canvas.getBoundingClientRect();
        canvas.addEventListener("wheel", event => {
            if (event.ctrlKey || Math.abs(event.deltaY) > Math.abs(event.deltaX)) {
                event.preventDefault();
                this.zoom(Math.exp(Math.max(-1, Math.min(event.deltaY / 300, 1))), (event.clientX - box().left) / box().width);
            }
        }, {passive: false});
        canvas.addEventListener("pointerdown", event => {
            canvas.setPointerCapture(event.pointerId);
            this.pointers.set(event.pointerId, event.clientX);
        });
        canvas.addEventListener("pointermove", event => {
            if (this.pointers.has(event.pointerId)) this.drag(event, box());
            this.tell(event);
        });
        for (const kind of ["pointerup", "pointercancel"]) {
            canvas.addEventListener(kind, event => this.pointers.delete(event.pointerId));
        }
        canvas.addEventListener("pointerleave", () => showTip());
        canvas.addEventListener("dblclick", () => this.show(0, this.pages.rows));
        canvas.addEventListener("keydown", event => {
            const wide = this.end - this.begin, moves = {ArrowLeft: -0.2, ArrowRight: 0.2};
            if (event.key in moves) this.show(this.begin + moves[event.key] * wide, this.end + moves[event.key] * wide);
            else if (event.key === "+" || event.key === "=") this.zoom(0.5);
            else if (event.key === "-") this.zoom(2);
            else if (event.key === "Home") this.show(0, this.pages.rows);
            else return;
            event.preventDefault();
        });
    }
    drag(event, box) {
        const before = this.pointers.get(event.pointerId), wide = this.end - this.begin;
        const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
        this.pointers.set(event.pointerId, event.clientX);
        if (others.length) { // two fingers: what is below each stays there
            const fixed = others[0][1], was = Math.abs(before - fixed), is = Math.abs(event.clientX - fixed);
            if (was > 8 && is > 8) this.zoom(was / is, (fixed - box.left) / box.width);
            return;
        }
        const moved = (before - event.clientX) / box.width * wide;
        this.show(this.begin + moved, this.end + moved);
    }
}
