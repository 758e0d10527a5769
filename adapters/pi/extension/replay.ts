/**
 * For a test: reads stories, lists of events, from stdin and says where the prompt "p", with
 * the marker "[sheep:p]", stands at the end of each.
 */
import { readFileSync } from "node:fs";

import { expect, next, type Step } from "./child.ts";

const stories: Step[][] = JSON.parse(readFileSync(0, "utf8"));
const begin = expect({ busy: false, turns: 0, prompt: "", marker: "", ours: false }, "p", "[sheep:p]");
console.log(JSON.stringify(stories.map((story) => story.reduce(next, begin))));
