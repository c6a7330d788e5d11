"""Words that tell how a sentence means its parts, in the languages that notes are written in most.

Each list is for all languages together: a word that means something else in another language is left out.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split()) for phrase in text.split("|"))


def _pairs(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pair.split("/")) for pair in text.split())


ARTICLES = _words(
    """
    the a an der die das den dem des ein eine einen einem einer eines le la les l un une el los las una unos unas il
    lo gli uno o os um uma uns umas de het een en ett
    """
)
INDEFINITE = _words("a an ein eine einen einem einer un une una uno um uma een en ett")
"""In front of a value these make a class of it, and a thing can be of several."""

FILLERS = _words(
    """
    now currently already still actually really just simply please also again presently today very jetzt nun derzeit
    aktuell momentan bereits schon noch auch wirklich bitte mittlerweile maintenant actuellement désormais déjà
    encore aussi vraiment ahora actualmente ya todavía también realmente adesso attualmente ora già ancora anche
    davvero agora atualmente já ainda também realmente nu momenteel al nog ook echt nuvarande fortfarande redan
    också сейчас теперь уже ещё также
    """
)
NEGATIONS = _words(
    """
    not no never cannot neither nor without nicht kein keine keinen keinem keiner keines nie niemals ohne ne n
    jamais sans nunca jamás non mai senza não jamais niet geen nooit zonder inte aldrig ingen utan не никогда нет
    nie değil ikke aldri ei eivät
    """
)
BESIDE_A_NEGATION = _words("longer more anymore any mehr pas plus más più mais meer längre больше")
"""What may stand beside a negation and says nothing of its own there."""

PREPOSITIONS = _words(
    """
    to from into onto before after with without over under in on at by for until since against between via through
    instead zu zum zur von vom nach vor mit bei in im an am auf für über unter um seit bis aus gegen durch à au aux
    dans sur sous pour par avec vers chez depuis avant après con sin en por para desde hasta sobre hacia entre per
    da dal dalla nel nella nei su sul sulla tra fra em no na nos nas com sem ao às alle naar van met bij voor op uit
    tot om för från till på vid hos av в во на с со к из от для до по
    """
)
CONJUNCTIONS = _words(
    """
    and but or because when while if so und aber oder weil wenn während sobald denn et mais ou parce quand lorsque
    si y pero porque cuando mientras e ma perché quando mentre mas porque quando maar omdat wanneer terwijl och men
    eller eftersom när medan и но или потому когда если
    """
)
COPULAS = _words(
    """
    is are be equals becomes became remains stays ist sind wird bleibt lautet beträgt heißt est sont devient reste
    es son está están sigue è sono diventa rimane resta é são fica continua zijn wordt blijft är blir равен равна
    является jest
    """
)
EMPTY_VERBS = _words(
    """
    is are was were be been being has have had do does did will would can could ist sind war waren hat haben wird
    werden est sont était a ont es son era está están ha han è sono era ha hanno é são está estão tem zijn was heeft
    hebben wordt är var har blir
    """
)
EMPTY_WORDS = _words("of s von der des de du d del della dei di do da dos van von av its their it they that which")

AROUND_A_VALUE = _words(
    """
    use uses using used run runs running listen listens serve serves bind binds bound set configured expose exposes
    nutzt verwendet läuft lauscht hört benutzt utilise écoute tourne usa utiliza escucha corre ascolta gira escuta
    roda gebruikt draait luistert använder kör lyssnar keep keeps require requires
    """
)
"""Verbs that say nothing of their own where a noun names the value, as in "listens on port 80"."""

NAMING = _words(
    """
    port version owner lead leader maintainer manager responsible contact target destination size limit maximum
     minimum timeout deadline budget price cost rate interval retention region zone default branch threshold capacity
     quota password editor shell database backend host hostname address url endpoint language timezone theme status
     framework registry provider bucket cluster name title role location office duration length count number replicas
     schedule frequency color colour mode level license birthday manager besitzer besitzerin eigentümer
     verantwortlich verantwortliche ansprechpartner ziel größe limit grenze frist preis intervall zeitlimit standard
     zweig datenbank sprache anzahl name ort farbe stufe zuständig kapazität speicher propriétaire responsable cible
     destination taille limite délai prix intervalle région branche base langue nombre nom lieu couleur niveau
     capacité dueño dueña propietario propietaria encargado objetivo destino tamaño límite plazo precio intervalo
     región rama idioma número nombre lugar nivel capacidad puerto versión versione versión proprietario responsabile
     obiettivo destinazione dimensione scadenza prezzo intervallo regione ramo lingua numero nome luogo livello porta
      proprietário responsável alvo destino tamanho prazo preço região ramo idioma número versão dono dona
     eigenaar verantwoordelijke doel grootte limiet prijs poort versie taal aantal naam regio ägare ansvarig mål
     storlek gräns pris språk antal namn version порт версия владелец размер цель цена лимит
     """
)
"""Nouns of relations that have one value at a time."""

DATING = _words(
    """
    deadline due release launch expiry expires birthday anniversary start starts begins end ends kickoff frist
    termin start beginn fecha lanzamiento plazo vence lancement échéance scadenza lancio prazo lançamento
    """
)
"""With these a date is the value, and not only when a thing was said."""

BEFORE_A_TIME = _words("after within every nach alle après toutes tous después cada dopo ogni após elke na efter varje")
UNITS = _words(
    """
    seconds minutes hours days weeks months sekunden minuten stunden tagen tage wochen monaten secondes heures jours
    semaines mois segundos minutos horas días semanas meses secondi minuti ore giorni settimane mesi dias seconden uren
    dagen weken maanden sekunder minuter timmar dagar veckor
    """
)
BEFORE_A_RELEASE = _words(
    """
    on targets target requires require needs need auf benötigt braucht sur exige cible requiere necesita su richiede
    em requer precisa op vereist på kräver
    """
)

TELLING_WHEN = _words(
    """
    since in until before after from depuis dans avant après jusqu seit ab bis vor nach desde en antes después hasta
    da dalla dal nella prima dopo na no até sinds sedan vanaf с
    """
)
"""In front of a noun such as "version" these make a time of it: "since version 3" gives no value to anything."""

MANY = _words(
    """
    error errors fix fixes fehler erreur
    ticket tickets issue issues id ids identifier commit commits hash sha source sources dependency dependencies tag
    tags label labels reason reasons example examples alias aliases result results note notes todo question idea
    option options step steps pr prs bug bugs run build session sessions quelle quellen beispiel grund schritt
    exemple raison étape ejemplo razón paso fuente esempio motivo passo fonte exemplo razão bron voorbeeld stap
    källa exempel steg
    """
)
"""Of these there are many: two values do not contradict each other."""

BEFORE_A_VALUE = _phrases(
    """
    owned by| maintained by| led by| managed by| run by| set to| hosted on| hosted in| hosted by| deployed to|
    deploys to| deploy to| located in| lives in| live in| based in| starts at| start at| begins at| runs at|
    scheduled for| scheduled at| called| named| defaults to| default to| limited to| pinned to| points to|
    belongs to| reports to| expires on| works at| works for| stored in| capped at| ends at| lasts| costs| weighs|
    takes place in| takes place on| writes to port| listens on| gehört| gehört zu| beginnt um| startet um| endet um|
    liegt in| liegt auf| wohnt in| arbeitet bei| dauert| kostet| zielt auf| betreut von| verwaltet von|
    geleitet von| gehostet auf| gehostet bei| gesetzt auf| begrenzt auf| appartient à| commence à| démarre à|
    débute à| finit à| habite à| travaille chez| dure| coûte| géré par| gérée par| hébergé sur| hébergé chez|
    limité à| fixé à| fixée à| pertenece a| empieza a| comienza a| termina a| vive en| trabaja en| dura| cuesta|
    gestionado por| gestionada por| alojado en| limitado a| fijado en| appartiene a| inizia alle| comincia alle|
    parte alle| finisce alle| vive a| lavora per| costa| gestito da| gestita da| ospitato su| limitato a|
    pertence a| começa às| inicia às| termina às| mora em| trabalha em| custa| gerenciado por| hospedado em|
    hoort bij| begint om| start om| eindigt om| woont in| werkt bij| duurt| kost| beheerd door| gehost op| ägs av|
    börjar| startar| slutar| bor i| arbetar på| kostar| sköts av| kept for| retained for| valid for| written in|
    written with| built with| powered by| due on| due| geschrieben in| écrit en| escrito en| scritto in| escrito em
    """
)
"""Ends of what stands in front of a single value."""

BEHIND_A_VALUE = _words(
    """
    owns leads maintains manages besitzt leitet betreut verwaltet verantwortet possède dirige gère maintient dirige
    gestiona mantiene lidera possiede guida gestisce mantiene possui lidera gerencia mantém bezit leidt beheert äger
    leder
    """
)
"""Verbs whose subject is the one value of what follows."""

OPPOSITES = _pairs(
    """
    enabled/disabled enable/disable allowed/forbidden required/optional true/false always/never
    synchronous/asynchronous sync/async public/private mutable/immutable active/inactive online/offline
    valid/invalid visible/hidden enabled/off mandatory/optional possible/impossible encrypted/unencrypted
    compressed/uncompressed supported/unsupported aktiviert/deaktiviert aktiv/inaktiv erlaubt/verboten
    erforderlich/optional öffentlich/privat immer/nie activé/désactivé activée/désactivée actif/inactif
    autorisé/interdit obligatoire/facultatif public/privé toujours/jamais activado/desactivado
    habilitado/deshabilitado activo/inactivo permitido/prohibido obligatorio/opcional público/privado siempre/nunca
    attivato/disattivato abilitato/disabilitato attivo/inattivo permesso/vietato obbligatorio/facoltativo
    pubblico/privato sempre/mai ativado/desativado habilitado/desabilitado ativo/inativo permitido/proibido
    obrigatório/opcional ingeschakeld/uitgeschakeld actief/inactief toegestaan/verboden verplicht/optioneel
    altijd/nooit aktiverad/inaktiverad tillåten/förbjuden alltid/aldrig включен/выключен включена/выключена
    разрешено/запрещено
    """
)
"""Pairs of words of which only one can be true of a thing."""

PRONOUNS = _words(
    """
    it this that there he she they we i you who which what these those here es dies das er sie wir ich du was wer il
    elle on nous vous ils elles je ce cela él ella ellos esto eso yo nosotros egli lei loro questo noi io ele ela
    eles isso isto nós eu hij zij wij ik dit dat han hon de vi jag det
    """
)
