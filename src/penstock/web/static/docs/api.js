// The reference of the API.

import { startFrame } from "./frame.js";

startFrame();
