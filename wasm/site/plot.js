// A plot of lines over logarithmic axes, as SVG.

import { figure, makeSVG } from "./ui.js";

const left = 58;
const right = 16;
const top = 14;
const bottom = 46;

/** Marks of the series, so that they differ by more than their colour. */
const marks = [
  (x, y) => makeSVG("circle", { cx: x, cy: y, r: 4.5 }),
  (x, y) => makeSVG("rect", { x: x - 4, y: y - 4, width: 8, height: 8 }),
  (x, y) => makeSVG("path", { d: `M${x} ${y - 5.5}l5 9.5h-10z` }),
];

/**
 * Shows series in an element, as wide as that is, and again whenever its width changes.
 * @param {{title: string, x: {label: string, ticks: number[]}, y: {label: string}, series: {name: string, points: [number, number][]}[]}} what
 */
export function plot(element, what) {
  observer.observe(element);
  shown.set(element, what);
  draw(element);
}

const shown = new WeakMap();
const observer = new ResizeObserver((entries) => entries.forEach((e) => shown.has(e.target) && draw(e.target)));

function draw(element) {
  const { title, x, y, series } = shown.get(element);
  const width = Math.max(260, element.clientWidth);
  const height = Math.round(Math.min(360, 160 + width * 0.3));
  const values = series.flatMap((s) => s.points.map((p) => p[1])).filter((v) => v > 0);
  const low = 10 ** Math.floor(Math.log10(Math.min(...values, 1)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values, 10) * 1.01));
  const scale = (v, from, to, start, end) => start + ((Math.log(v) - Math.log(from)) / (Math.log(to) - Math.log(from) || 1)) * (end - start);
  const px = (v) => scale(v, x.ticks[0], x.ticks.at(-1), left + 12, width - right - 12);
  const py = (v) => scale(v, low, high, height - bottom, top);

  const svg = makeSVG("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}: ${describe(series)}` });
  for (let decade = low; decade <= high * 1.001; decade *= 10) {
    svg.append(makeSVG("line", { class: "grid", x1: left, x2: width - right, y1: py(decade), y2: py(decade) }),
      makeSVG("text", { class: "tick", x: left - 8, y: py(decade) + 4, "text-anchor": "end" }, label(decade)));
    if (decade * 2 > high) continue;
    for (let k = 2; k < 10; k++) svg.append(makeSVG("line", { class: "grid fine", x1: left, x2: width - right, y1: py(k * decade), y2: py(k * decade) }));
  }
  for (const t of x.ticks) {
    svg.append(makeSVG("line", { class: "grid", x1: px(t), x2: px(t), y1: top, y2: height - bottom }),
      makeSVG("text", { class: "tick", x: px(t), y: height - bottom + 18, "text-anchor": "middle" }, String(t)));
  }
  svg.append(makeSVG("text", { class: "axis", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, x.label),
    makeSVG("text", { class: "axis", transform: `translate(14 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label));
  series.forEach((s, i) => {
    const group = makeSVG("g", { class: `series s${i}` });
    if (s.points.length > 1) group.append(makeSVG("polyline", { points: s.points.map(([a, b]) => `${px(a)},${py(b)}`).join(" ") }));
    for (const [a, b] of s.points) {
      const mark = marks[i](px(a), py(b));
      mark.append(makeSVG("title", {}, `${s.name}, ${a}: ${figure(b)} ${y.label}`));
      group.append(mark);
    }
    svg.append(group);
  });
  element.replaceChildren(legend(series), svg);
}

function legend(series) {
  const list = document.createElement("ul");
  list.className = "legend";
  series.forEach((s, i) => {
    const item = document.createElement("li");
    item.append(makeSVG("svg", { width: 26, height: 14, "aria-hidden": "true", class: `series s${i}` }, makeSVG("polyline", { points: "0,7 26,7" }), marks[i](13, 7)), s.name);
    list.append(item);
  });
  return list;
}

function describe(series) {
  return series.filter((s) => s.points.length).map((s) => `${s.name}, ${s.points.map(([a, b]) => `${figure(b)} at ${a}`).join(", ")}`).join("; ") || "no points yet";
}

const label = (v) => (v >= 1 ? v.toLocaleString("en") : String(Number(v.toPrecision(1))));

/** Shows numbers over their index as a curve on linear axes. */
export function curve(element, values, title) {
  shown.delete(element);
  const width = Math.max(260, element.clientWidth);
  const height = 220;
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (!Number.isFinite(v)) continue;
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (!(low < high)) [low, high] = [(Number.isFinite(low) ? low : 0) - 1, (Number.isFinite(high) ? high : 0) + 1];
  const px = (i) => left + (i / Math.max(1, values.length - 1)) * (width - left - right);
  const py = (v) => height - 30 - ((v - low) / (high - low)) * (height - 30 - top);
  let d = "";
  let pen = false;
  values.forEach((v, i) => { // a number that is none leaves a gap
    if (Number.isFinite(v)) d += `${pen ? "L" : "M"}${px(i).toFixed(1)} ${py(v).toFixed(1)}`;
    pen = Number.isFinite(v);
  });
  const svg = makeSVG("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}: ${values.length} numbers from ${figure(low)} to ${figure(high)}` });
  for (const v of [low, (low + high) / 2, high]) {
    svg.append(makeSVG("line", { class: "grid", x1: left, x2: width - right, y1: py(v), y2: py(v) }),
      makeSVG("text", { class: "tick", x: left - 8, y: py(v) + 4, "text-anchor": "end" }, figure(v)));
  }
  for (const [i, anchor] of [[0, "start"], [values.length - 1, "end"]]) {
    svg.append(makeSVG("text", { class: "tick", x: px(i), y: height - 10, "text-anchor": anchor }, String(i)));
  }
  svg.append(makeSVG("g", { class: "series s0" }, makeSVG("path", { class: "curve", d })));
  element.replaceChildren(svg);
}
