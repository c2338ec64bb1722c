"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvas = document.getElementById("scatter");
  const text = document.getElementById("scatter-text");
  const [xs, ys, how] = ["x", "y", "how"].map((id) => document.getElementById(id));
  const boxes = [...document.querySelectorAll("input[data-class]")];
  const shown = boxes.map(() => true); // the classes, then noise where there is any
  const MISSING = 65535;

  const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const raw = bytes(data.values);
  const words = new Uint16Array(raw.length / 2);
  for (let i = 0; i < words.length; i++) words[i] = raw[2 * i] | (raw[2 * i + 1] << 8);
  const labels = bytes(data.labels);
  const certainty = bytes(data.certainty);
  const column = (c) => words.subarray(c * data.rows, (c + 1) * data.rows);

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (h) => variable(h < data.classes ? `--p${h % data.colours}` : "--sure");
  const title = (h) => (h < data.classes ? String(h) : "noise");
  const format = (v) => (Math.abs(v) < 1e-12 ? "0" : String(Number(v.toPrecision(4)))).replace("-", "−");

  function ticks(low, high, count) {
    if (!(high > low)) return [low];
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return found;
  }

  function marker(pen, h, x, y, size) {
    const shape = h < data.classes ? Math.floor(h / data.colours) % 3 : 2;
    if (shape === 0) { pen.moveTo(x + 1.2 * size, y); pen.arc(x, y, 1.2 * size, 0, 7); }
    else if (shape === 1) { pen.moveTo(x - 1.6 * size, y + 1.4 * size); pen.lineTo(x + 1.6 * size, y + 1.4 * size); pen.lineTo(x, y - 1.6 * size); pen.closePath(); }
    else { pen.rect(x - 2 * size, y - 0.6 * size, 4 * size, 1.2 * size); pen.rect(x - 0.6 * size, y - 2 * size, 1.2 * size, 4 * size); }
  }

  // Places of the rows that have both columns, lie on the axes and whose class is shown
  function places(box) {
    const ends = [xs, ys].map((select) => data.columns[Number(select.value)]);
    const [a, b] = [xs, ys].map((select) => column(Number(select.value)));
    const map = ends.map(({ scale, limits }) => {
      const wide = limits[1] - limits[0] || 1;
      return [(scale[0] - limits[0]) / wide, (scale[1] - scale[0]) / 65534 / wide];
    });
    const found = { x: [], y: [], row: [], missing: 0, beyond: 0 };
    for (let i = 0; i < data.rows; i++) {
      if (!shown[labels[i]]) continue;
      if (a[i] === MISSING || b[i] === MISSING) { found.missing++; continue; }
      const x = map[0][0] + a[i] * map[0][1], y = map[1][0] + b[i] * map[1][1];
      if (x < 0 || x > 1 || y < 0 || y > 1) { found.beyond++; continue; }
      found.x.push(box.left + x * box.width); found.y.push(box.top + (1 - y) * box.height); found.row.push(i);
    }
    return found;
  }

  function drawRows(pen, found) {
    const many = found.row.length / 20000;
    const size = 2 - 0.9 * Math.min(1, many);
    pen.globalAlpha = 0.8 - 0.3 * Math.min(1, many);
    for (let h = 0; h < shown.length; h++) {
      pen.fillStyle = colour(h);
      pen.beginPath();
      found.row.forEach((i, n) => { if (labels[i] === h) marker(pen, h, found.x[n], found.y[n], size); });
      pen.fill();
    }
  }

  function drawCertainty(pen, found) {
    const order = found.row.map((_, n) => n).sort((m, n) => certainty[found.row[n]] - certainty[found.row[m]]);
    for (const n of order) { // the least certain on top
      const doubt = Math.min(1, (255 - certainty[found.row[n]]) / 127);
      pen.globalAlpha = 0.25 + 0.75 * doubt;
      pen.fillStyle = variable(doubt > 0.4 ? "--doubt" : doubt > 0.1 ? "--some" : "--sure");
      pen.fillRect(found.x[n] - 1.2, found.y[n] - 1.2, 2.4, 2.4);
    }
  }

  function drawDensity(pen, found, box) {
    const cell = 7, across = Math.ceil(box.width / cell);
    const counts = new Map();
    found.row.forEach((i, n) => {
      const key = Math.floor((found.y[n] - box.top) / cell) * across + Math.floor((found.x[n] - box.left) / cell);
      if (!counts.has(key)) counts.set(key, new Float64Array(shown.length));
      counts.get(key)[labels[i]]++;
    });
    const total = (by) => by.reduce((sum, v) => sum + v, 0);
    const most = Math.max(1, ...[...counts.values()].map(total));
    for (const [key, by] of counts) {
      pen.globalAlpha = 0.12 + 0.88 * (Math.log1p(total(by)) / Math.log1p(most));
      pen.fillStyle = colour(by.indexOf(Math.max(...by)));
      pen.fillRect(box.left + (key % across) * cell, box.top + Math.floor(key / across) * cell, cell - 0.5, cell - 0.5);
    }
  }

  function drawAxes(pen, box) {
    pen.globalAlpha = 1;
    pen.strokeStyle = variable("--line"); pen.fillStyle = variable("--quiet"); pen.lineWidth = 1;
    pen.font = "12px system-ui, sans-serif";
    pen.strokeRect(box.left + 0.5, box.top + 0.5, box.width, box.height);
    const [x, y] = [xs, ys].map((select) => data.columns[Number(select.value)]);
    pen.textAlign = "center";
    for (const v of ticks(...x.limits, 6)) pen.fillText(format(v), box.left + ((v - x.limits[0]) / (x.limits[1] - x.limits[0])) * box.width, box.top + box.height + 17);
    pen.textAlign = "right";
    for (const v of ticks(...y.limits, 6)) pen.fillText(format(v), box.left - 6, box.top + (1 - (v - y.limits[0]) / (y.limits[1] - y.limits[0])) * box.height + 4);
    pen.fillStyle = variable("--ink"); pen.font = "600 13px system-ui, sans-serif"; pen.textAlign = "center";
    pen.fillText(x.name, box.left + box.width / 2, box.top + box.height + 38, box.width);
    pen.save();
    pen.translate(14, box.top + box.height / 2); pen.rotate(-Math.PI / 2);
    pen.fillText(y.name, 0, 0, box.height);
    pen.restore();
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const box = { left: 62, top: 8, width: width - 74, height: height - 56 };
    const found = places(box);
    [drawRows, drawDensity, drawCertainty][Number(how.value)](pen, found, box);
    drawAxes(pen, box);
    document.getElementById("certainties").hidden = how.value !== "2";
    describe(found);
  }

  function describe(found) {
    const [x, y] = [xs, ys].map((select) => data.columns[Number(select.value)].name);
    const on = shown.flatMap((yes, h) => (yes ? [h] : []));
    const classes = on.length === shown.length ? "all classes" : on.length ? `class ${on.map(title).join(", ")} only` : "no class";
    let said = `${y} against ${x}: ${found.row.length.toLocaleString("en")} rows of ${classes}.`;
    if (found.missing) said += ` ${found.missing.toLocaleString("en")} rows lack one of the two.`;
    if (found.beyond) said += ` ${found.beyond.toLocaleString("en")} rows lie beyond the axes.`;
    text.textContent = said;
    canvas.setAttribute("aria-label", `Scatter plot: ${how.selectedOptions[0].textContent}. ${said}`);
  }

  function toggle() {
    boxes.forEach((box) => {
      const h = Number(box.dataset.class);
      shown[h] = box.checked;
      document.querySelectorAll(`.part.h${h}`).forEach((part) => part.classList.toggle("off", !box.checked));
    });
    draw();
  }

  boxes.forEach((box) => box.addEventListener("change", toggle));
  // One click leaves a class alone; the same click again brings all back
  document.querySelectorAll("button[data-only]").forEach((button) => button.addEventListener("click", () => {
    const wanted = Number(button.dataset.only);
    const alone = boxes.every((box) => box.checked === (Number(box.dataset.class) === wanted));
    boxes.forEach((box) => { box.checked = alone || Number(box.dataset.class) === wanted; });
    toggle();
  }));
  // A table that is wider than its place says so, and that there is more on a side
  const wide = [...document.querySelectorAll(".scroll")];
  const cue = (part) => {
    const hidden = part.scrollWidth - part.clientWidth;
    part.parentElement.classList.toggle("wide", hidden > 1);
    part.parentElement.classList.toggle("left", part.scrollLeft > 1);
    part.parentElement.classList.toggle("right", part.scrollLeft < hidden - 1);
  };
  wide.forEach((part) => { part.addEventListener("scroll", () => cue(part), { passive: true }); new ResizeObserver(() => cue(part)).observe(part); });
  document.getElementById("all").addEventListener("click", () => { boxes.forEach((box) => { box.checked = true; }); toggle(); });
  [xs, ys, how].forEach((select) => select.addEventListener("change", draw));
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper is light whatever the screen is, and shows what is folded away
  const folded = [...document.querySelectorAll("details")];
  let open = [];
  window.addEventListener("beforeprint", () => {
    open = folded.map((each) => each.open);
    folded.forEach((each) => { each.open = true; });
    document.documentElement.classList.add("paper"); draw();
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((each, i) => { each.open = open[i]; });
    document.documentElement.classList.remove("paper"); draw();
  });
  toggle();
})();
