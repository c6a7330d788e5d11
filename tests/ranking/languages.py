"""A made-up labelled set in eight languages: notes about things, and questions that name one in another form.

Each language has 40 things, each in one note only, and 160 notes about other things. A question shares with its note
at most one word, and that one in another grammatical form (scripts without spaces: inside a longer run).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STEMMED = ("german", "french", "spanish", "italian", "russian")
UNSPACED = ("chinese", "japanese", "thai")


@dataclass(frozen=True)
class Language:
    """What the notes of a language are made of.

    ``things`` are pairs of a form in a note and a form in a question; ``note`` and ``asked`` have a place for one.
    """

    things: str
    note: tuple[str, ...]
    asked: tuple[str, ...]
    filler: str
    filler_subjects: str
    filler_objects: str

    def notes(self) -> Iterator[str]:
        """Yield 200 notes: the 40 labelled ones first."""
        for number, (in_note, _) in enumerate(self.pairs()):
            yield self.note[number % len(self.note)].format(in_note)
        for subject, thing in product(self.filler_subjects.split(), self.filler_objects.split()):
            yield self.filler.format(subject, thing)

    def questions(self) -> list[str]:
        """Return 40 questions; each belongs to the note at its place."""
        return [self.asked[number % len(self.asked)].format(form) for number, (_, form) in enumerate(self.pairs())]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the 40 things in both forms."""
        found = []
        for pair in self.things.split():
            in_note, _, form = pair.partition("/")
            found.append((in_note, form or in_note))
        return found


LANGUAGES = {
    "german": Language(
        """Schlüssel/Schlüsseln Rechnung/Rechnungen Drucker/Druckern Vertrag/Vertrags Kamera/Kameras Leitung/Leitungen
        Schrank/Schranks Lampe/Lampen Maschine/Maschinen Batterie/Batterien Werkzeug/Werkzeuge Fahrrad/Fahrrads
        Koffer/Koffern Teppich/Teppiche Spiegel/Spiegeln Heizung/Heizungen Fenster/Fenstern Sensor/Sensoren
        Antenne/Antennen Brille/Brillen Pumpe/Pumpen Leiter/Leitern Messer/Messern Flasche/Flaschen Kabel/Kabeln
        Schraube/Schrauben Tastatur/Tastaturen Bildschirm/Bildschirme Kalender/Kalendern Ordner/Ordnern
        Stempel/Stempeln Waage/Waagen Zange/Zangen Hammer/Hammers Pinsel/Pinseln Decke/Decken Kissen/Kissens
        Teller/Tellern Gabel/Gabeln Pflanze/Pflanzen""",
        ("Der Ort für {} ist das zweite Regal links.", "Wir haben {} am Montag nach Bremen geschickt."),
        ("Wo liegt das mit den {}?", "Was geschah mit unseren {}?"),
        "{} hat gestern {} repariert und es danach notiert.",
        "Anna Bernd Clara David Eva Fritz Greta Hans",
        """Tor Dach Auto Boot Rad Uhr Ofen Herd Zaun Bett Stuhl Tisch Radio Geige Trommel Flöte Jacke Schuh Hut
        Mantel""",
    ),
    "french": Language(
        """clé/clés facture/factures imprimante/imprimantes contrat/contrats caméra/caméras câble/câbles
        armoire/armoires
        lampe/lampes machine/machines batterie/batteries marteau/marteaux bicyclette/bicyclettes valise/valises
        tapis/tapis miroir/miroirs radiateur/radiateurs fenêtre/fenêtres capteur/capteurs antenne/antennes
        lunette/lunettes pompe/pompes échelle/échelles couteau/couteaux bouteille/bouteilles rideau/rideaux vis/vis
        clavier/claviers écran/écrans calendrier/calendriers classeur/classeurs tampon/tampons balance/balances
        pince/pinces pinceau/pinceaux couverture/couvertures coussin/coussins assiette/assiettes
        fourchette/fourchettes
        plante/plantes brosse/brosses""",
        ("Emplacement prévu de {} : deuxième étagère à gauche.", "Lundi, Marc a expédié {} vers Rennes."),
        ("Où sont rangées nos {} ?", "Que sont devenues les {} ?"),
        "{} a réparé {} hier puis a tout noté.",
        "Anne Bruno Claire Denis Élise Fabien Gaëlle Henri",
        """portail toit voiture bateau roue montre four poêle clôture lit chaise table radio violon tambour flûte
        veste
        chaussure chapeau manteau""",
    ),
    "spanish": Language(
        """llave/llaves factura/facturas impresora/impresoras contrato/contratos cámara/cámaras cable/cables
        armario/armarios lámpara/lámparas máquina/máquinas batería/baterías martillo/martillos bicicleta/bicicletas
        maleta/maletas alfombra/alfombras espejo/espejos radiador/radiadores ventana/ventanas sensor/sensores
        antena/antenas gafa/gafas bomba/bombas escalera/escaleras cuchillo/cuchillos botella/botellas cortina/cortinas
        tornillo/tornillos teclado/teclados pantalla/pantallas calendario/calendarios carpeta/carpetas sello/sellos
        balanza/balanzas pinza/pinzas pincel/pinceles manta/mantas cojín/cojines plato/platos tenedor/tenedores
        planta/plantas cepillo/cepillos""",
        ("Lugar previsto para {}: segundo estante, izquierda.", "El lunes Marcos envió {} hacia Bilbao."),
        ("¿Dónde guardamos nuestras {}?", "¿Qué pasó con las {}?"),
        "{} reparó {} ayer y después anotó todo.",
        "Ana Bruno Clara Diego Elena Fabio Gema Hugo",
        """portón tejado coche barco rueda reloj horno estufa valla cama silla mesa radio violín tambor flauta
        chaqueta
        zapato sombrero abrigo""",
    ),
    "italian": Language(
        """chiave/chiavi fattura/fatture stampante/stampanti contratto/contratti telecamera/telecamere cavo/cavi
        armadio/armadi lampada/lampade macchina/macchine batteria/batterie martello/martelli bicicletta/biciclette
        valigia/valigie tappeto/tappeti specchio/specchi radiatore/radiatori finestra/finestre sensore/sensori
        antenna/antenne occhiale/occhiali pompa/pompe scala/scale coltello/coltelli bottiglia/bottiglie tenda/tende
        vite/viti tastiera/tastiere schermo/schermi calendario/calendari cartella/cartelle timbro/timbri
        bilancia/bilance pinza/pinze pennello/pennelli coperta/coperte cuscino/cuscini piatto/piatti
        forchetta/forchette
        pianta/piante spazzola/spazzole""",
        ("Posto previsto per {}: secondo scaffale, sinistra.", "Lunedì Marco ha spedito {} verso Torino."),
        ("Dove teniamo le nostre {}?", "Che fine hanno fatto le {}?"),
        "{} ha riparato {} ieri e poi ha annotato tutto.",
        "Anna Bruno Chiara Dario Elena Fabio Gaia Ugo",
        """cancello tetto auto barca ruota orologio forno stufa recinto letto sedia tavolo radio violino tamburo
        flauto
        giacca scarpa cappello cappotto""",
    ),
    "russian": Language(
        """ключ/ключами счёт/счетами принтер/принтерами договор/договорами камера/камерами кабель/кабелями
        шкаф/шкафами лампа/лампами машина/машинами батарея/батареями молоток/молотками велосипед/велосипедами
        чемодан/чемоданами ковёр/коврами зеркало/зеркалами радиатор/радиаторами окно/окнами датчик/датчиками
        антенна/антеннами очки/очками насос/насосами лестница/лестницами нож/ножами бутылка/бутылками
        занавеска/занавесками
        винт/винтами клавиатура/клавиатурами экран/экранами календарь/календарями папка/папками печать/печатями
        весы/весами щипцы/щипцами кисть/кистями одеяло/одеялами подушка/подушками тарелка/тарелками вилка/вилками
        растение/растениями щётка/щётками""",
        ("Место хранения: вторая полка слева, {}.", "Марк отправил груз в понедельник: {}."),
        ("Что стало с нашими {}?", "Кто занимается этими {}?"),
        "{} вчера чинил {} и потом всё записал.",
        "Антон Борис Виктор Глеб Денис Егор Захар Игорь",
        """ворота крыша лодка колесо часы печь плита забор кровать стул стол радио скрипка барабан флейта куртка
        ботинок шляпа пальто сарай""",
    ),
    "chinese": Language(
        """钥匙 发票 打印机 合同 摄像头 电缆 衣柜 台灯 洗衣机 电池 锤子 自行车 行李箱 地毯 镜子 暖气片 窗户 传感器
        天线
        眼镜 水泵 梯子 菜刀 瓶子 窗帘 螺丝 键盘 显示器 日历 文件夹 印章 天平 钳子 画笔 毛毯 枕头 盘子 叉子 盆栽
        牙刷""",
        ("第二层架子左边放着{}不要移动。", "星期一马克把{}寄往青岛。"),
        ("请问{}存哪里了？", "后来{}怎么样？"),
        "{}昨天修好了{}然后写下记录。",
        "安娜 波波 陈晨 大卫 艾娃 方方 高歌 何欢",
        """大门 屋顶 汽车 小船 车轮 手表 烤箱 炉灶 篱笆 木床 椅子 桌子 收音机 提琴 鼓 长笛 夹克 皮鞋 帽子 大衣""",
    ),
    "japanese": Language(
        """鍵束 請求書 印刷機 契約書 監視カメラ 配線 洋服棚 電気スタンド 洗濯機 乾電池 金槌 自転車 旅行鞄 絨毯 姿見
        暖房器具
        窓枠 感知器 受信アンテナ 老眼鏡 揚水ポンプ 脚立 包丁 水筒 暖簾 木ねじ キーボード 液晶画面 暦表 書類綴じ 印鑑
        天秤
        やっとこ 絵筆 毛布 枕カバー 大皿 フォーク 観葉植物 歯ブラシ""",
        ("二段目の棚の左に{}を置いてある。", "月曜にマルコが{}を青森へ送った。"),
        ("{}はどこですか？", "その後{}どうなった？"),
        "{}が昨日{}を直して記録した。",
        "杏奈 文太 千佳 大輔 恵理 福子 五郎 華子",
        """門扉 屋根 乗用車 小舟 車輪 腕時計 天火 竈 垣根 寝台 椅子 食卓 無線機 提琴 太鼓 横笛 上着 革靴 帽子 外套""",
    ),
    "thai": Language(
        """กุญแจ ใบแจ้งหนี้ เครื่องพิมพ์ สัญญาเช่า กล้องวงจรปิด สายไฟฟ้า ตู้เสื้อผ้า โคมไฟ เครื่องซักผ้า แบตเตอรี่
        ค้อนเหล็ก
        จักรยาน กระเป๋าเดินทาง พรมแดง กระจกเงา หม้อน้ำ หน้าต่าง เซ็นเซอร์ เสาอากาศ แว่นตา ปั๊มน้ำ บันไดลิง มีดโกน
        ขวดแก้ว
        ผ้าม่าน ตะปูเกลียว แป้นพิมพ์ จอภาพ ปฏิทิน แฟ้มเอกสาร ตรายาง ตาชั่ง คีมหนีบ พู่กัน ผ้าห่ม หมอนข้าง
        จานกระเบื้อง ส้อมเงิน
        ต้นมะลิ แปรงสีฟัน""",
        ("ชั้นที่สองด้านซ้ายเก็บ{}อย่าเคลื่อนย้าย", "วันจันทร์มาร์คส่ง{}ไปเชียงใหม่"),
        ("{}อยู่ไหน", "เกิดอะไรขึ้นกับ{}"),
        "{}ซ่อม{}เมื่อวานแล้วจดไว้",
        "อันนา บอย แคท เดวิด อีวา ฟ้า กอล์ฟ หนุ่ย",
        """ประตูรั้ว หลังคา รถยนต์ เรือเล็ก ล้อยาง นาฬิกา เตาอบ เตาแก๊ส รั้วไม้ เตียงนอน เก้าอี้ โต๊ะกลม วิทยุ
        ไวโอลิน กลองยาว ขลุ่ย
        เสื้อนอก รองเท้า หมวกฟาง เสื้อโค้ท""",
    ),
}
