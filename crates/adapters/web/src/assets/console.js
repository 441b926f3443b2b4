// Keeps the page as the server shows it now. Without this script every page can still be read.

const live = document.getElementById("live");
const connection = document.getElementById("connection");

// Times are shown as how long ago they were.
function ago(seconds) {
  const past = Math.abs(seconds);
  const text = past < 60 ? `${past}s`
    : past < 3600 ? `${Math.floor(past / 60)}m${String(past % 60).padStart(2, "0")}s`
    : past < 86400 ? `${Math.floor(past / 3600)}h${String(Math.floor(past % 3600 / 60)).padStart(2, "0")}m`
    : `${Math.floor(past / 86400)}d${String(Math.floor(past % 86400 / 3600)).padStart(2, "0")}h`;
  return { past: text, ago: seconds < 0 ? `in ${text}` : `${text} ago` };
}

function showTimes(root) {
  const now = Date.now();
  for (const time of root.querySelectorAll("time[datetime]")) {
    const { past, ago: words } = ago(Math.floor((now - Date.parse(time.dateTime)) / 1000));
    const text = time.classList.contains("since") ? past : words;
    if (time.textContent !== text) time.textContent = text;
  }
}

// Makes one tree like another, and leaves alone what is the same: focus, choices and open details stay.
function morph(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || (from.id ?? "") !== (to.id ?? "")) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  if (from.nodeName === "TIME" && from.getAttribute("datetime") === to.getAttribute("datetime")) return;
  const keeps = from.nodeName === "DETAILS" ? ["open"] : from.nodeName === "INPUT" ? ["checked"] : [];
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !keeps.includes(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !keeps.includes(name)) from.setAttribute(name, value);
  }
  const byId = new Map([...from.children].filter((child) => child.id).map((child) => [child.id, child]));
  let at = from.firstChild;
  for (const next of [...to.childNodes]) {
    const known = next.id ? byId.get(next.id) : undefined;
    if (known && known !== at) from.insertBefore(known, at), at = known;
    if (!at) { from.appendChild(next); continue; }
    if (next.id && !known) { from.insertBefore(next, at); continue; }
    const after = at.nextSibling;
    morph(at, next);
    at = after;
  }
  while (at) { const after = at.nextSibling; at.remove(); at = after; }
}

function follow() {
  let source;
  const open = () => {
    source = new EventSource(live.dataset.live);
    source.addEventListener("page", (event) => {
      const page = document.createElement("div");
      page.innerHTML = JSON.parse(event.data);
      page.id = "live";
      page.dataset.live = live.dataset.live;
      morph(live, page);
      showTimes(live);
      document.documentElement.dataset.version = Number(document.documentElement.dataset.version ?? 0) + 1;
    });
    source.onopen = () => { connection.textContent = ""; };
    source.onerror = () => { connection.textContent = "The server cannot be reached; trying again."; };
  };
  // A page that nobody sees needs no news.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = undefined; } else if (!source) { open(); }
  });
  open();
}

// The log of a task: text and nothing but text.
async function showLog(pre) {
  const container = document.getElementById("log-container");
  const follows = document.getElementById("log-follow");
  const find = document.getElementById("log-find");
  let stop = new AbortController();
  let text = "";

  const show = () => {
    const wanted = find.value;
    const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 20;
    if (!wanted) {
      pre.textContent = text;
    } else {
      const lines = text.split("\n").filter((line) => line.toLowerCase().includes(wanted.toLowerCase()));
      pre.replaceChildren(...lines.flatMap((line) => {
        const at = line.toLowerCase().indexOf(wanted.toLowerCase());
        const mark = document.createElement("mark");
        mark.textContent = line.slice(at, at + wanted.length);
        return [line.slice(0, at), mark, line.slice(at + wanted.length) + "\n"];
      }));
    }
    if (follows.checked && atEnd) pre.scrollTop = pre.scrollHeight;
  };

  const read = async () => {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    text = "";
    pre.textContent = "";
    const query = new URLSearchParams({ follow: String(follows.checked) });
    if (container?.value) query.set("container", container.value);
    try {
      const answer = await fetch(`${pre.dataset.log}?${query}`, { signal });
      if (!answer.ok) {
        const refusal = await answer.json().catch(() => ({}));
        pre.textContent = refusal.message ?? `The log cannot be read (${answer.status}).`;
        return;
      }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let due;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text = (text + value).slice(-2_000_000);
        due ??= setTimeout(() => { due = undefined; show(); }, 100);
      }
      show();
    } catch (error) {
      if (!signal.aborted) pre.textContent = `The log cannot be read: ${error.message}`;
    }
  };

  container?.addEventListener("change", read);
  follows.addEventListener("change", read);
  find.addEventListener("input", show);
  await read();
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) {
    for (const box of event.target.closest("table").querySelectorAll("input[name=path]")) box.checked = event.target.checked;
  }
});

showTimes(document);
setInterval(() => showTimes(document), 1000);
if (live) follow();
const log = document.getElementById("log");
if (log) showLog(log);
