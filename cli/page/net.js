// Works of the server: a body is sent, frames come back (cli/serve_job.h says which).

export class Failed extends Error {}

function* takeFrames(buffer) {
  let at = 0;
  for (;;) {
    const end = buffer.indexOf(10, at);
    if (end < 0) break;
    const [kind, length] = new TextDecoder().decode(buffer.subarray(at, end)).split(" ");
    const from = end + 1;
    if (from + Number(length) > buffer.length) break;
    at = from + Number(length);
    yield { kind, bytes: buffer.subarray(from, at), at };
  }
}

function together(parts, size) {
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

// The messages without the lines of progress that wipe themselves.
const messages = (text) => text.replace(/\r\x1b\[K[^\r\n]*/g, "").trim();

/**
 * Runs a work. hear(line): each line of its output as it comes. progress(text): each line of
 * progress, "" at each tick. Returns {status, bytes, text, err}; throws where the server is gone.
 */
export async function run(name, { args = {}, body, signal, hear, progress, started } = {}) {
  const query = new URLSearchParams(args).toString();
  const answer = await fetch(`do/${name}${query ? `?${query}` : ""}`,
    { method: "POST", body, signal });
  if (!answer.ok) throw new Failed((await answer.text()).trim());
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = new Uint8Array(0), line = "", err = "", status = "lost";
  const out = [];
  let size = 0;
  const take = ({ kind, bytes }) => {
    if (kind === "job") started?.(new TextDecoder().decode(bytes));
    else if (kind === "end") status = new TextDecoder().decode(bytes);
    else if (kind === "tick") progress?.("");
    else if (kind === "err") {
      const text = new TextDecoder().decode(bytes);
      err += text;
      progress?.(text.split("\x1b[K").pop().trim());
    } else if (kind === "out" && hear) {
      line += decoder.decode(bytes, { stream: true });
      const lines = line.split("\n");
      line = lines.pop();
      lines.forEach(hear);
    } else if (kind === "out") {
      out.push(bytes.slice());
      size += bytes.length;
    }
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    rest = rest.length ? together([rest, value], rest.length + value.length) : value;
    let used = 0;
    for (const frame of takeFrames(rest)) {
      take(frame);
      used = frame.at;
    }
    rest = rest.slice(used);
  }
  const bytes = together(out, size);
  return { status, bytes, text: new TextDecoder().decode(bytes), err: messages(err) };
}

/** Asks a work to end with what it has. */
export const stop = (job) => fetch(`stop?job=${job}`, { method: "POST" });

/** Of several asked for one after the other only the last counts: the one before is ended. */
export function latest() {
  let controller = null;
  return {
    cancel() { controller?.abort(); controller = null; },
    async run(name, options) {
      controller?.abort();
      const mine = (controller = new AbortController());
      try {
        const answer = await run(name, { ...options, signal: mine.signal });
        return mine === controller ? answer : null;
      } catch (error) {
        if (mine.signal.aborted) return null;
        throw error;
      }
    },
  };
}
