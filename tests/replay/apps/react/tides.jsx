import { useEffect, useState } from "react";

export default function Tides() {
  const [text, setText] = useState("Wait.");
  useEffect(() => {
    fetch("/react/api/tides.json").then((got) => got.json())
      .then((data) => setText(`${data.length} tides, loaded when wanted`));
  }, []);
  return <p>{text}</p>;
}
