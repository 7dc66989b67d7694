// The page that verifies files of anybody, without a key.

import { Verify } from "./pages/verify.js";
import { applyTheme } from "./theme.js";
import { html, render } from "./view.js";

const Page = () => html`<main class="open-page"><${Verify} at="/verify" />
  <p class="soft small">What is read are the Content Credentials of the file. They can be removed, so a file without them proves nothing.</p></main>`;

applyTheme();
render(html`<${Page} />`, document.body);
